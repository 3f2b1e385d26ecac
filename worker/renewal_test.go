package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// A long lease is renewed when less is left of it than a renewal is for, and while the function
// that is asked agrees. The context of the handler ends before the lease does.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("slow")}}}
		var begun time.Time
		var ended time.Duration
		var cause error
		var at []int
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			if ended == 0 { // its outcome waits for the next settlement
				at = append(at, int(time.Since(begun)/time.Second))
			}
			return make([]error, len(ds))
		}
		g := start(t, worker.Config{
			Source: src, Concurrency: 1, Lease: 1000 * time.Second,
			Renewal: worker.Renewal{Every: 60 * time.Second, For: 300 * time.Second, While: func(d *nixie.Delivery) bool {
				return d.Key == "slow" && time.Since(begun) < 900*time.Second
			}},
			Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
				begun = time.Now()
				<-ctx.Done()
				ended, cause = time.Since(begun), context.Cause(ctx)
				return cause
			}),
		})
		time.Sleep(1200 * time.Second)
		g.end()
		if want := []int{720, 780, 840}; !slices.Equal(at, want) {
			t.Errorf("renewed after %v s, want %v", at, want)
		}
		if end := (840 + 300) * time.Second; ended < end-61*time.Second || ended >= end || !errors.Is(cause, worker.ErrLeaseLost) {
			t.Errorf("the context of the handler ended after %s by: %v; its lease ends after %s", ended, cause, end)
		}
	})
}

// The worker beats while it waits for work, and for anything else while a handler is stuck.
func TestBeat(t *testing.T) {
	for name, c := range map[string]struct {
		feed     string // one key for each receive: * is a suspect, ! is abandoned
		prefetch int
	}{
		"idle":                         {"", 1},
		"full":                         {"stuck", 1},
		"no goroutine is free":         {"quick stuck a b c d", 100},
		"a suspect waits for it":       {"quick stuck *a", 100},
		"an outcome cannot be settled": {"!gone", 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var beats atomic.Int64
				src := &script{}
				if strings.HasPrefix(c.feed, "!") {
					src.settle = func(context.Context, []nixie.Settlement) []error { return []error{coded(nixie.CodeUnavailable)} }
				}
				for key := range strings.FieldsSeq(c.feed) {
					d := delivery(key)
					d.Crashes, d.Abandoned = strings.Count(key, "*"), key[0] == '!'
					src.feed = append(src.feed, []*nixie.Delivery{d})
				}
				g := start(t, worker.Config{
					Source: src, Concurrency: 1, Prefetch: c.prefetch, Beat: func() { beats.Add(1) },
					Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
						if d.Key != "quick" { // after which the worker asks for more than it can run
							<-ctx.Done()
						}
						return ctx.Err()
					}),
				})
				for range 10 {
					before := beats.Load()
					time.Sleep(2 * time.Second)
					if beats.Load() == before {
						t.Error("no beat in two seconds")
					}
				}
				g.end()
			})
		})
	}
}

// A worker whose source does not come back from a call about what is in hand does not beat until
// it does.
func TestNoBeatWhileACallIsStuck(t *testing.T) {
	for _, call := range []string{"settle", "extend"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var beats atomic.Int64
				back := make(chan struct{})
				src := &script{feed: [][]*nixie.Delivery{{delivery("a")}}}
				hang := func(n int) []error { <-back; return make([]error, n) }
				if call == "settle" {
					src.settle = func(_ context.Context, sts []nixie.Settlement) []error { return hang(len(sts)) }
				} else {
					src.extend = func(_ context.Context, ds []*nixie.Delivery) []error { return hang(len(ds)) }
				}
				g := start(t, worker.Config{
					Source: src, Concurrency: 1, Beat: func() { beats.Add(1) },
					Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
						if call == "extend" {
							<-ctx.Done()
						}
						return nil
					}),
				})
				time.Sleep(41 * time.Second) // the call has begun after 10 s at the latest, and has 30 s
				before := beats.Load()
				time.Sleep(time.Minute)
				if n := beats.Load() - before; before == 0 || n > 0 {
					t.Errorf("%d beats, and %d while the call was stuck", before, n)
				}
				close(back)
				time.Sleep(2 * time.Second)
				if beats.Load() == before {
					t.Error("no beat after the call came back")
				}
				g.end()
			})
		})
	}
}

// A worker that rested sees the end of a timeout as soon as one that did not.
func TestWatchdogAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		var begun atomic.Int64
		late := make(chan time.Duration, 1)
		g := start(t, worker.Config{
			Source: src, Concurrency: 1, Timeout: 10 * time.Second,
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				begun.Store(time.Now().UnixNano())
				time.Sleep(20 * time.Second)
				return nil
			}),
			Observer: &nixie.Observer{Late: func(*nixie.Delivery, time.Duration) { late <- time.Since(time.Unix(0, begun.Load())) }},
		})
		for range 3 {
			time.Sleep(time.Hour)
			src.mu.Lock()
			src.feed = append(src.feed, []*nixie.Delivery{delivery("slow")})
			src.mu.Unlock()
			time.Sleep(30 * time.Second)
			select {
			case after := <-late:
				if after > 10*time.Second+250*time.Millisecond {
					t.Errorf("it was told after %s", after)
				}
			default:
				t.Error("no one was told of a handler that is late")
			}
		}
		g.end()
	})
}

func TestBadRenewals(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		lease time.Duration
		r     worker.Renewal
		fine  bool
	}{
		{0, worker.Renewal{}, true},
		{0, worker.Renewal{For: 30 * s, Every: 10 * s}, true},
		{0, worker.Renewal{For: 30*s + 1}, false},
		{0, worker.Renewal{For: -1}, false},
		{0, worker.Renewal{For: 1}, false},
		{0, worker.Renewal{Every: -1}, false},
		{0, worker.Renewal{Every: 11 * s}, false},
		{1000 * s, worker.Renewal{For: 300 * s, Every: 60 * s}, true},
		{1000 * s, worker.Renewal{For: 300 * s, Every: 101 * s}, false},
	} {
		_, err := worker.New(worker.Config{Source: &script{}, Handler: handler(nil), Lease: c.lease, Renewal: c.r})
		if (err == nil) != c.fine || err != nil && nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Error(fmt.Sprint(c.lease, c.r.For, c.r.Every), err)
		}
	}
}
