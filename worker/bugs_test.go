package worker_test

import (
	"context"
	"errors"
	"fmt"
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

// The tests of this file are named after defects of similar systems. docs/trust.md describes the
// defects by number.

// A renewal may fail in any way, also with an unknown outcome. Then the handler's context ends
// before the lease can, and the worker goes on.
func TestB013_RenewalsThatFailAnyhow(t *testing.T) {
	for name, errs := range map[string]func(n int) []error{
		"unavailable":     func(n int) []error { return each(n, coded(nixie.CodeUnavailable)) },
		"outcome unknown": func(n int) []error { return each(n, coded(nixie.CodeOutcomeUnknown)) },
		"internal":        func(n int) []error { return each(n, coded(nixie.CodeInternal)) },
		"limit":           func(n int) []error { return each(n, coded(nixie.CodeLimit)) },
		"no code":         func(n int) []error { return each(n, errBoom) },
		"no answers":      func(int) []error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
				src.extend = func(_ context.Context, ds []*nixie.Delivery) []error { return errs(len(ds)) }
				begun := time.Now()
				var took time.Duration
				g := start(t, worker.Config{Source: src, Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if d.Key == "it" {
						<-ctx.Done()
						took = time.Since(begun)
					}
					return ctx.Err()
				})})
				time.Sleep(time.Minute)
				src.mu.Lock()
				src.feed = append(src.feed, []*nixie.Delivery{delivery("next")})
				src.mu.Unlock()
				time.Sleep(10 * time.Second)
				g.end()
				if took < 20*time.Second || took > 24*time.Second+250*time.Millisecond {
					t.Errorf("the handler was told after %s of a lease of 30 s", took)
				}
				if got := src.verbs()["next"]; got != nixie.Complete {
					t.Errorf("the next message is settled as %q", got)
				}
			})
		})
	}
}

// tardy is a source whose renewals take long.
type tardy struct {
	*store.Source
	by time.Duration
}

func (s *tardy) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	wait(ctx, s.by)
	return s.Source.Extend(ctx, ds, lease)
}

// While the first run is alive and its store slow, no worker starts a second one.
func TestB014_SlowStoreAndLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "a", "b", "c", "d")
		var running sync.Map
		var runs atomic.Int64
		var workers []*going
		for i, st := range []*memory.Store{st, st.Join("second"), st.Join("third")} {
			workers = append(workers, start(t, worker.Config{
				Source: &tardy{store.NewSource(st, "q"), time.Duration(i) * 4 * time.Second}, Concurrency: 2,
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if _, there := running.LoadOrStore(d.ID, true); there {
						t.Errorf("%s runs twice at once", d.Key)
					}
					defer running.Delete(d.ID)
					runs.Add(1)
					wait(ctx, 5*time.Minute) // ten leases
					return ctx.Err()
				}),
			}))
		}
		time.Sleep(time.Hour)
		for _, g := range workers {
			g.end()
		}
		if got := info(t, st); got.Succeeded != 4 || runs.Load() != 4 {
			t.Errorf("%d runs; %+v", runs.Load(), got)
		}
		sound(t, st)
	})
}

// A lease of any length is renewed well before half of it is over.
func TestB018_RenewalsOfEachLease(t *testing.T) {
	for _, lease := range []time.Duration{nixie.MinLease, time.Second, 7 * time.Second, nixie.DefaultLease, time.Hour} {
		t.Run(lease.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
				last, longest, n := time.Now(), time.Duration(0), 0
				src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
					longest, last = max(longest, time.Since(last)), time.Now()
					n++
					return make([]error, len(ds))
				}
				g := start(t, worker.Config{Source: src, Lease: lease, Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
					wait(ctx, 5*lease)
					return ctx.Err()
				})})
				time.Sleep(6 * lease)
				g.end()
				if n < 10 || longest > lease/2 {
					t.Errorf("%d renewals, the longest wait was %s", n, longest)
				}
				if got := src.verbs()["it"]; got != nixie.Complete {
					t.Errorf("settled as %q", got)
				}
			})
		})
	}
}

// One of two workers of a process stops. The other keeps its deliveries.
func TestB023_OneOfTwoPoolsStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprint(i))
		}
		fill(t, st, keys...)
		var runs sync.Map
		pool := func(mine time.Duration) *going {
			return start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 4, Prefetch: 12, Drain: time.Minute,
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if _, again := runs.LoadOrStore(d.ID, true); again {
						t.Errorf("%s ran twice", d.Key)
					}
					wait(ctx, mine)
					return ctx.Err()
				})})
		}
		first, second := pool(20*time.Second), pool(50*time.Second)
		time.Sleep(10 * time.Second)
		first.end()
		time.Sleep(20 * time.Minute)
		second.end()
		if got := info(t, st); got.Succeeded != 40 {
			t.Errorf("%+v", got)
		}
		for _, key := range keys {
			if m := message(t, st, key); m.Crashes != 0 || m.Attempts != 1 {
				t.Errorf("%s: %d crashes, %d attempts", key, m.Crashes, m.Attempts)
			}
		}
		sound(t, st)
	})
}

// blip is a source of which one call fails, before or after its effect.
type blip struct {
	*store.Source
	at    int64 // which call
	after bool
	calls atomic.Int64
}

// now reports whether this call fails.
func (b *blip) now(after bool) bool { return after == b.after && b.calls.Load() == b.at }

func (b *blip) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	b.calls.Add(1)
	if b.now(false) {
		return nil, coded(nixie.CodeUnavailable)
	}
	return b.Source.Receive(ctx, want)
}

func (b *blip) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	b.calls.Add(1)
	if b.now(false) {
		return each(len(sts), coded(nixie.CodeUnavailable))
	}
	errs := b.Source.Settle(ctx, sts)
	if b.now(true) {
		return each(len(sts), coded(nixie.CodeOutcomeUnknown))
	}
	return errs
}

// A store that fails in any one call loses no failure, no death and no success.
func TestB026_OneCallFails(t *testing.T) {
	pol, err := policy.New(policy.Config{MaxAttempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []bool{false, true} {
		for at := int64(1); at <= 25; at++ {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fill(t, st, "fails", "works")
				runs := map[string]int{}
				g := start(t, worker.Config{Source: &blip{Source: store.NewSource(st, "q"), at: at, after: after}, Policy: pol,
					Concurrency: 1, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						runs[d.Key]++
						if d.Key == "fails" {
							return errBoom
						}
						return nil
					})})
				time.Sleep(5 * time.Minute)
				g.end()
				dead, done := message(t, st, "fails"), message(t, st, "works")
				if dead.State != nixie.Dead || len(dead.History) != 3 || runs["fails"] != 3 {
					t.Errorf("call %d, after %v: %s with %d failures after %d runs", at, after, dead.State, len(dead.History),
						runs["fails"])
				}
				if done.State != nixie.Succeeded || runs["works"] != 1 {
					t.Errorf("call %d, after %v: %s after %d runs", at, after, done.State, runs["works"])
				}
				sound(t, st)
			})
		}
	}
}

// A message that cannot be decoded is dead at once. No worker tries it again, not even one that
// takes it back from a dead holder. The messages after it run.
func TestB073_UndecodableIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "bad", "lost", "good")
		if ds, err := st.Join("dead").Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Second}); err != nil || len(ds) != 2 {
			t.Fatal(ds, err)
		}
		runs := map[string]int{}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 1,
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				runs[d.Key]++
				if d.Key == "bad" {
					return nixie.WithReason(errors.New("no JSON"), nixie.ReasonSerialization)
				}
				return nil
			})})
		time.Sleep(time.Hour)
		g.end()
		bad := message(t, st, "bad")
		if bad.State != nixie.Dead || runs["bad"] != 1 || bad.Deliveries > 4 || string(bad.Body) != "" {
			t.Errorf("%s after %d runs and %d deliveries", bad.State, runs["bad"], bad.Deliveries)
		}
		for _, key := range []string{"lost", "good"} {
			if m := message(t, st, key); m.State != nixie.Succeeded {
				t.Errorf("%s is %s", key, m.State)
			}
		}
		sound(t, st)
	})
}

// Workers whose clocks are an hour off take no message from each other: only the store's clock
// counts.
func TestB078_ClocksAnHourOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "a", "b", "c", "d", "e", "f")
		var running sync.Map
		var workers []*going
		for i, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
			workers = append(workers, start(t, worker.Config{
				Source: store.NewSource(st.Join(fmt.Sprint("node ", i)), "q"), Concurrency: 1,
				Clock: func() time.Time { return time.Now().Add(skew) },
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if _, there := running.LoadOrStore(d.ID, true); there {
						t.Errorf("%s runs twice at once", d.Key)
					}
					defer running.Delete(d.ID)
					wait(ctx, 2*time.Minute)
					return ctx.Err()
				}),
			}))
		}
		time.Sleep(time.Hour)
		for _, g := range workers {
			g.end()
		}
		if got := info(t, st); got.Succeeded != 6 {
			t.Errorf("%+v", got)
		}
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			if m := message(t, st, key); m.Deliveries != 1 {
				t.Errorf("%s was delivered %d times", key, m.Deliveries)
			}
		}
		sound(t, st)
	})
}

// A clock that is set back while a handler runs makes no negative duration, and no context ends
// early.
func TestB079_ClockSetWhileItRuns(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var skew atomic.Int64
			st := memory.New(memory.Options{})
			fill(t, st, "it")
			g := start(t, worker.Config{
				Source: store.NewSource(st, "q"), Concurrency: 1,
				Clock: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) },
				Handler: handler(func(context.Context, *nixie.Delivery) error {
					time.Sleep(time.Second)
					skew.Store(int64(jump))
					time.Sleep(time.Second)
					return nixie.Permanent(errBoom)
				}),
			})
			time.Sleep(10 * time.Second)
			g.end()
			m := message(t, st, "it")
			if m.State != nixie.Dead || len(m.History) != 1 || m.History[0].Took < 0 {
				t.Errorf("jump of %s: %s with %+v", jump, m.State, m.History)
			}
		})
	}
}
