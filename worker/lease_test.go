package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// A handler's context ends a fifth of a lease before the lease can.
func TestRenewalFails(t *testing.T) {
	for _, outcome := range []error{nil, errBoom, nixie.Permanent(errBoom)} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
			src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
				return each(len(ds), coded(nixie.CodeUnavailable))
			}
			begun := time.Now()
			g := start(t, worker.Config{Source: src, Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				<-ctx.Done()
				if took := time.Since(begun); took < 20*time.Second || took > 24*time.Second+250*time.Millisecond {
					t.Errorf("ended after %s", took)
				}
				return outcome
			})})
			time.Sleep(time.Minute)
			g.end()
			want := map[error]nixie.Verb{nil: nixie.Complete, errBoom: nixie.Release}[outcome]
			if want == "" {
				want = nixie.Bury
			}
			if got := src.verbs()["it"]; got != want {
				t.Errorf("%v is settled as %s, want %s", outcome, got, want)
			}
		})
	}
}

func TestLeaseLostWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("long"), delivery("lost"), delivery("kept")}}}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			errs := make([]error, len(ds))
			for i, d := range ds {
				if d.Key == "lost" {
					errs[i] = coded(nixie.CodeLeaseLost)
				}
			}
			return errs
		}
		var ran atomic.Int64
		g := start(t, worker.Config{Source: src, Concurrency: 1, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			if d.Key == "lost" {
				t.Error("run without a lease")
			}
			ran.Add(1)
			time.Sleep(15 * time.Second)
			return nil
		})})
		time.Sleep(time.Minute)
		g.end()
		if got := src.verbs(); len(got) != 2 || ran.Load() != 2 {
			t.Errorf("settled %v", got)
		}
	})
}

// No handler starts under a lease that ends soon. A delivery that waits behind a long handler for a
// whole lease is given back.
func TestTooLateToStart(t *testing.T) {
	for _, renewing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{feed: [][]*nixie.Delivery{{delivery("long"), delivery("late")}}}
			if !renewing {
				src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
					return each(len(ds), coded(nixie.CodeUnavailable))
				}
			}
			g := start(t, worker.Config{Source: src, Concurrency: 1, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				if d.Key == "late" {
					t.Error("run")
				}
				if renewing {
					time.Sleep(5 * time.Minute)
				} else {
					time.Sleep(25 * time.Second)
				}
				return nil
			})})
			time.Sleep(50 * time.Second)
			if got := src.verbs()["late"]; got != nixie.Release {
				t.Errorf("renewing %v: settled as %q", renewing, got)
			}
			time.Sleep(10 * time.Minute)
			g.end()
		})
	}
}

func TestShortestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		n := 0
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			wait(ctx, want.Wait) // all of it, and then finds something
			n++
			return []*nixie.Delivery{delivery(fmt.Sprint(n))}, nil
		}
		g := start(t, worker.Config{Source: src, Lease: nixie.MinLease, Handler: handler(succeed)})
		time.Sleep(time.Second)
		g.end()
		done := 0
		for _, verb := range src.verbs() {
			if verb == nixie.Complete {
				done++
			}
		}
		if done < 50 {
			t.Errorf("%d completed", done)
		}
	})
}

// R15: a handler that ignores the end of its context loses its lease a lease later. It blocks only
// its own goroutine.
func TestR15_StuckHandlerLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lastRenewal atomic.Int64
		begun := time.Now()
		seen := &troubles{}
		free := make(chan struct{})
		src := &script{feed: [][]*nixie.Delivery{{delivery("stuck")}, {suspect("suspect", 2)}, {delivery("fresh")}}}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			for _, d := range ds {
				if d.Key == "stuck" {
					lastRenewal.Store(int64(time.Since(begun)))
				}
			}
			return make([]error, len(ds))
		}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Timeout: time.Minute,
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				if d.Key == "stuck" {
					<-free
				}
				return nil
			}), Observer: seen.observer()})
		time.Sleep(10 * time.Minute)
		if last := time.Duration(lastRenewal.Load()); last < 70*time.Second || last > 90*time.Second {
			t.Errorf("renewed until %s", last)
		}
		if got := src.verbs(); got["fresh"] != nixie.Complete || got["suspect"] != nixie.Complete || g.InHand() != 0 {
			t.Errorf("others: %v, %d in hand", got, g.InHand())
		}
		g.stop()
		if err := <-g.done; !errors.Is(err, worker.ErrStuck) {
			t.Errorf("Run: %v", err)
		}
		close(free)
		synctest.Wait()
		if n, late, _ := seen.count(); n != 1 || late != 1 {
			t.Errorf("%d told, %d late", n, late)
		}
		if src.verbs()["stuck"] != "" {
			t.Error("the outcome of the stuck handler was settled")
		}
	})
}

// A draining worker renews its leases.
func TestRenewalWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		g := start(t, worker.Config{Source: src, Drain: 5 * time.Minute,
			Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(4 * time.Minute):
					return nil
				}
			})})
		time.Sleep(time.Second)
		g.end()
		if src.extends < 20 || src.verbs()["it"] != nixie.Complete {
			t.Errorf("%d renewals, %v", src.extends, src.verbs())
		}
	})
}

// alarmed is a source that reports once that leases are lost.
type alarmed struct {
	*script
	alarm chan struct{}
	asked atomic.Int64
}

func (a *alarmed) LeasesLost() <-chan struct{} {
	if a.asked.Add(1) > 1 {
		return nil
	}
	return a.alarm
}

// When a source reports lost leases the worker renews at once, and not at its next tick.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &alarmed{script: &script{feed: [][]*nixie.Delivery{{delivery("it")}}}, alarm: make(chan struct{})}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			return each(len(ds), coded(nixie.CodeLeaseLost))
		}
		begun := time.Now()
		g := start(t, worker.Config{Source: src, Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
			time.Sleep(time.Second)
			close(src.alarm)
			select {
			case <-d.Lost():
			case <-time.After(time.Minute):
			}
			if took := time.Since(begun); took > 2*time.Second || context.Cause(ctx) != worker.ErrLeaseLost {
				t.Errorf("ended after %s: %v", took, context.Cause(ctx))
			}
			return ctx.Err()
		})})
		time.Sleep(2 * time.Minute)
		g.end()
	})
}

// A renewed lease counts from a moment before the call. So a worker with slow renewals never
// believes in a lease for longer than the source does. While slow renewals succeed, no lease is
// lost.
func TestSlowRenewals(t *testing.T) {
	const slow = 8 * time.Second
	for _, renewed := range []int{1, 99} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
			calls := 0
			src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
				if calls++; calls > renewed {
					return each(len(ds), coded(nixie.CodeUnavailable))
				}
				time.Sleep(slow)
				return make([]error, len(ds))
			}
			begun, ended := time.Now(), time.Duration(0)
			g := start(t, worker.Config{Source: src, Lease: 30 * time.Second,
				Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
					wait(ctx, 100*time.Second)
					ended = time.Since(begun)
					return nil
				})})
			time.Sleep(2 * time.Minute)
			g.end()
			// The only renewal begins after 10 s: its lease ends after 40 s, and the context a
			// fifth of a lease before.
			if least, most := 30*time.Second, 35*time.Second; renewed == 1 && (ended < least || ended > most) {
				t.Errorf("the handler went on until %s, a fifth of a lease before its end is from %s to %s", ended, least, most)
			}
			if renewed > 1 && ended != 100*time.Second {
				t.Errorf("the handler was ended after %s", ended)
			}
		})
	}
}
