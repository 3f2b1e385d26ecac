package redis

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/worker"
)

// R12: calls under a lease that is over change nothing, and get lease-lost.
func TestR12_LateCallsAreFenced(t *testing.T) {
	t.Parallel()
	f := actual(t)
	first, second := f.open(t, Config{}), f.open(t, Config{})
	f.produce(t, 1, func(int) string { return fine })
	late := take(t, first, 1)
	f.endLeases(t, "")
	now := take(t, second, 1)
	before := f.client.HGetAll(t.Context(), f.mailbox().keys[4]).Val()
	for name, err := range map[string]error{
		"ack":    first.Ack(t.Context(), pointers(late))[0],
		"nack":   first.Nack(t.Context(), []broker.Return{{Record: &late[0]}})[0],
		"extend": first.Extend(t.Context(), pointers(late), time.Hour)[0],
	} {
		if nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := f.client.HGetAll(t.Context(), f.mailbox().keys[4]).Val(); len(after) != 1 || after["1"] != before["1"] {
		t.Errorf("the holders were %v, and are %v", before, after)
	}
	if now[0].Crashes != 1 || now[0].PriorDeliveries != 1 || now[0].Epoch != 1 {
		t.Errorf("%+v", now[0])
	}
	if err := second.Ack(t.Context(), pointers(now))[0]; err != nil {
		t.Error(err)
	}
}

// run runs a worker on the mailbox until ctx ends.
func (f *fixture) run(ctx context.Context, t *testing.T, d *Driver, c worker.Config) {
	t.Helper()
	s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
	if err != nil {
		t.Fatal(err)
	}
	c.Source = s
	w, err := worker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(ctx) //nolint:errcheck // a stuck handler is one of its errors
}

// R15: the lease of a handler that does not end is not renewed for ever: another receiver gets the
// record.
func TestR15_AStuckHandlerLosesItsLease(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, 1, func(int) string { return fine })
	ctx, stop := context.WithCancel(t.Context())
	free, ended := make(chan struct{}), make(chan struct{})
	var begun sync.Once
	running := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(ctx, t, d, worker.Config{Lease: 200 * time.Millisecond, Timeout: 200 * time.Millisecond, Drain: -1,
			Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
				begun.Do(func() { close(running) })
				<-free
				return nil
			})})
	}()
	<-running
	other := f.open(t, Config{})
	got, err := other.Receive(t.Context(), broker.Want{Max: 1, Wait: testTimeout, Lease: time.Minute})
	if err != nil || len(got) != 1 || got[0].Crashes == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	close(free)
	stop()
	<-ended
	if err := other.Ack(t.Context(), pointers(got))[0]; err != nil {
		t.Error(err)
	}
}

// R16: a worker that stops gives back what it has not begun, and that costs no attempt.
func TestR16_UnstartedGoBack(t *testing.T) {
	t.Parallel()
	const records = 50
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, records, func(int) string { return fine })
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	done := 0
	f.run(ctx, t, d, worker.Config{Concurrency: 2, Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if done++; done == 10 {
			stop()
		}
		return nil
	})})
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := take(t, f.open(t, Config{}), records-done)
	for _, r := range rest {
		if r.PriorDeliveries != 0 || r.Crashes != 0 {
			t.Errorf("%+v", r)
		}
	}
	t.Logf("%d done, %d given back", done, len(rest))
}
