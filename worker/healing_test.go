package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

var (
	errDown = nixie.WithReason(errBoom, nixie.ReasonDependency)
	errLate = nixie.WithReason(errBoom, nixie.ReasonTimeout)
)

// With one hand five different messages open the default breaker that fail in a row for one reason
// that time may heal. Where the end is awaited every reason does it, until the first success.
func TestWhatOpensTheDefaultBreaker(t *testing.T) {
	code := 127
	missing := nixie.WithEvidence(nixie.Permanent(errBoom), nixie.Failure{ExitCode: &code})
	five := func(err error) []error { return slices.Repeat([]error{err}, 5) }
	for _, c := range []struct {
		name     string
		outcomes []error // of messages, one after the other; then success
		again    int     // that many of the outcomes are of one message
		awaited  bool
		reason   nixie.Reason // that opens one; empty: none opens
	}{
		{name: "five", outcomes: five(errDown), reason: nixie.ReasonDependency},
		{name: "five transient", outcomes: five(nixie.Transient(errBoom)), reason: nixie.ReasonHandler},
		{name: "four", outcomes: five(errDown)[:4]},
		{name: "a success between", outcomes: []error{errDown, errDown, errDown, nil, errDown, errDown}},
		{name: "two reasons", outcomes: []error{errDown, errLate, errDown, errLate, errDown, errLate, errDown, errLate}},
		{name: "another between", outcomes: []error{errDown, errDown, errLate, errDown, errBoom, errDown, errDown},
			reason: nixie.ReasonDependency},
		{name: "the same message", outcomes: five(errDown), again: 5},
		{name: "bad messages", outcomes: slices.Repeat([]error{errBoom}, 20)},
		{name: "panics", outcomes: five(nixie.WithReason(errBoom, nixie.ReasonPanic))},
		{name: "permanent", outcomes: five(nixie.Permanent(errDown))},
		{name: "released", outcomes: five(nixie.Snooze(errDown, time.Second))},
		{name: "bad at first", outcomes: five(errBoom), awaited: true, reason: nixie.ReasonHandler},
		{name: "permanent at first", outcomes: five(missing), awaited: true, reason: nixie.ReasonCommandFailed},
		{name: "bad after a success", outcomes: append([]error{nil}, slices.Repeat([]error{errBoom}, 20)...), awaited: true},
		{name: "a success among the bad", outcomes: append(five(errBoom)[:4], nil, errBoom, errBoom), awaited: true},
		{name: "buried as asked", outcomes: five(nixie.Verdict(nixie.Bury, errBoom)), awaited: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fillTyped(t, st, "job", max(len(c.outcomes)-max(c.again-1, 0), 1))
				var n atomic.Int64
				var first nixie.BreakerChange
				g := start(t, worker.Config{
					Source: store.NewSource(st, "q"), Concurrency: 1, Policy: noJitter(t, 20), Awaited: c.awaited,
					Logger: slog.New(slog.DiscardHandler),
					Handler: handler(func(context.Context, *nixie.Delivery) error {
						if i := int(n.Add(1)); i <= len(c.outcomes) {
							return c.outcomes[i-1]
						}
						return nil
					}),
					Observer: &nixie.Observer{Breaker: func(change nixie.BreakerChange) {
						if first.State == "" {
							first = change
						}
					}},
				})
				time.Sleep(time.Minute)
				g.end()
				if first.Reason != c.reason {
					t.Fatalf("opened %+v, want %q", first, c.reason)
				}
				if c.reason != "" && (first.State != "open" || first.Failures != 5 || first.Text != "boom" || first.Since != first.At ||
					first.Until.Sub(first.At) != 2*time.Second) {
					t.Errorf("told %+v", first)
				}
			})
		})
	}
}

// Until the first success everything that fails while it is tried goes back for nothing, also what
// is permanent. The first success closes what counted only for want of it.
func TestTheFirstSuccessOfAwaitedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 20)
		fillTyped(t, st, "free", 1)
		began, seen := time.Now(), &changes{}
		g := start(t, worker.Config{
			Source: store.NewSource(st, "q"), Concurrency: 1, Awaited: true, Logger: slog.New(slog.DiscardHandler),
			Observer: seen.observer(),
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				if d.Type == "free" {
					if time.Since(began) < 50*time.Second {
						return nixie.Snooze(nil, 10*time.Second)
					}
					return nil
				}
				return nixie.Permanent(errBoom)
			}),
		})
		time.Sleep(45 * time.Second)
		if got := info(t, st); got.Dead != 5 || g.Succeeded() {
			t.Errorf("%d are dead before a success", got.Dead)
		}
		open := g.OpenBreakers()
		if len(open) != 1 || open[0].Queue != "q" || open[0].Type != "job" || open[0].Text != "boom" || open[0].Failures != 5 {
			t.Errorf("open are %+v", open)
		}
		time.Sleep(time.Minute)
		if got := info(t, st); got.Dead != 20 || got.Succeeded != 1 || len(g.OpenBreakers()) > 0 || !g.Succeeded() {
			t.Errorf("after it %d are dead, %d succeeded", got.Dead, got.Succeeded)
		}
		g.end()
		if seen.list[len(seen.list)-1] != "q/job/handler closed" {
			t.Errorf("told %q", seen.list)
		}
	})
}

// A try costs no attempt and no delivery, and is recorded; what is given back costs nothing either.
// One message is tried at a time, at 2, 4, 8 … s, and each time another one.
func TestTriesAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 100)
		began := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		tried := map[string]int{}
		p, err := policy.New(policy.Config{Backoff: policy.Backoff{Base: time.Hour, Cap: time.Hour, Factor: 1, Jitter: policy.JitterNone}})
		if err != nil {
			t.Fatal(err)
		}
		g := start(t, worker.Config{
			Source: store.NewSource(st, "q"), Concurrency: 1, Policy: p, Logger: slog.New(slog.DiscardHandler),
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				if time.Since(began) > 0 {
					at, tried[d.Key] = append(at, time.Since(began)), tried[d.Key]+1
				}
				return errDown
			}),
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		mu.Lock()
		want := time.Duration(0)
		for i, got := range at {
			want += min(2*time.Second<<i, 5*time.Minute)
			if got < want || got > want+time.Duration(i+1)*100*time.Millisecond {
				t.Errorf("try %d is after %s, want %s", i, got, want)
			}
		}
		if len(at) < 8 || len(tried) != len(at) {
			t.Errorf("%d tries of %d messages", len(at), len(tried))
		}
		for i := range 100 {
			m := message(t, st, fmt.Sprint("job", i))
			attempts := 0
			if i < 5 {
				attempts = 1 // they opened it
			}
			if paid := m.Deliveries - m.Patience.Free; m.Attempts != attempts || paid != attempts || m.Patience.Tries != tried[m.Key] {
				t.Errorf("%s: %d attempts, %d deliveries, %+v", m.Key, m.Attempts, m.Deliveries, m.Patience)
			}
			if m.Patience.Tries > 0 && m.LastReason != nixie.ReasonDependency {
				t.Errorf("%s: its try is not recorded", m.Key)
			}
		}
		mu.Unlock()
		g.end()
	})
}

// A worker that ends when its source has nothing waits for an open breaker. The log says when it
// opened, by which cause and when it is tried, and when it is closed.
func TestAnOpenBreakerIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 30)
		var log bytes.Buffer
		a := newAway(time.Minute)
		g := start(t, worker.Config{
			Source: store.NewSource(st, "q"), Concurrency: 1, Handler: handler(a.handle), Until: worker.Until{Idle: true},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err := <-g.done; err != nil {
			t.Fatal(err)
		}
		if got := info(t, st); got.Succeeded < 25 {
			t.Errorf("ended with %+v", got)
		}
		text := log.String()
		for _, want := range []string{
			"circuit breaker is open", "type=job reason=dependency failures=5 error=boom next_try=2000-01-01T00:00:02", "breaker is closed",
		} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the log has %q %d times:\n%s", want, strings.Count(text, want), text)
			}
		}
	})
}

// A message of a type that the worker sees for the first time while another type is open does not
// wait for the next try.
func TestAnUnknownTypeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 30)
		o := &outage{began: time.Now(), until: time.Hour}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 4, Handler: handler(o.handle),
			Logger: slog.New(slog.DiscardHandler)})
		time.Sleep(20 * time.Minute)
		fillTyped(t, st, "free", 1)
		time.Sleep(2 * time.Second)
		if got := info(t, st); got.Succeeded != 1 {
			t.Errorf("%d succeeded", got.Succeeded)
		}
		g.end()
	})
}

// The breaker is that of the queue's profile, unless the worker has one of its own.
func TestTheBreakerOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		rule(t, st, "a", "profile=prodigy")
		rule(t, st, "b", "profile=whizbang")
		for _, queue := range []string{"a", "b", "c"} {
			for range 40 {
				if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: queue, Type: "job"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		seen := &changes{}
		g := start(t, worker.Config{
			Source: store.NewSource(st, "a", "b", "c"), Concurrency: 2, Observer: seen.observer(), Logger: slog.New(slog.DiscardHandler),
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				if d.Queue == "a" {
					return errors.New("any reason")
				}
				return errDown
			}),
		})
		time.Sleep(time.Second)
		g.end()
		slices.Sort(seen.list)
		if want := []string{"a/job/handler open", "c/job/dependency open"}; !slices.Equal(seen.list, want) {
			t.Errorf("told %q, want %q", seen.list, want)
		}
	})
}
