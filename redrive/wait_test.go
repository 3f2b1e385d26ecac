package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// If the cause is not repaired a redrive costs only a few letters, with and without a rate, and
// with a handler of any speed.
func TestWaitForOutcomesOfAWrongFix(t *testing.T) {
	const letters = 500
	for _, rate := range []float64{0, 50} {
		for _, takes := range []time.Duration{0, 30 * time.Millisecond, 5 * time.Second} {
			t.Run(fmt.Sprintf("rate %g, a handler of %s", rate, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st, e, op := probed(t, redrive.Config{Rate: rate}, letters)
					end := st.handle(t, takes, false)
					r, err := e.Run(t.Context(), op.ID)
					end()
					stopped := (*redrive.StoppedError)(nil)
					if !errors.As(err, &stopped) || r.Done > 20 || r.Pending != letters-r.Done {
						t.Errorf("%+v, %v", r.Operation, err)
					}
				})
			})
		}
	}
}

// If no worker claims letters, a redrive waits for about a second and then goes on. Letters that
// succeed hold nothing back.
func TestWaitEndsWithoutAWorker(t *testing.T) {
	for what, most := range map[string]time.Duration{"no worker": 2 * time.Second, "a worker": 15 * time.Second} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, e, op := probed(t, redrive.Config{}, 2000)
				if what != "no worker" {
					defer st.handle(t, 20*time.Millisecond, true)()
				}
				began := time.Now()
				r, err := e.Run(t.Context(), op.ID)
				if took := time.Since(began); err != nil || r.Done != 2000 || took > most {
					t.Errorf("%+v, %v after %s", r.Operation, err, took)
				}
			})
		})
	}
}

// A caller can wait for the outcomes of a redrive, for a limited time, and then redrive the letters
// that died again.
func TestWaitUntilEachHasAnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, e, op := probed(t, redrive.Config{}, 5)
		if _, err := e.Run(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		o, err := e.Await(t.Context(), op.ID, time.Minute)
		if took := time.Since(began); err != nil || o.UnderWay != 5 || took != time.Minute {
			t.Errorf("no worker: %+v, %v after %s", o, err, took)
		}
		end := st.handle(t, time.Second, false)
		if o, err = e.Await(t.Context(), op.ID, time.Minute); err != nil || o != (store.Outcome{SameFailure: 5}) {
			t.Errorf("a wrong fix: %+v, %v", o, err)
		}
		end()
		if n, err := st.Plan(t.Context(), store.Operation{ID: op.ID}, nixie.Filter{}, 0); err != nil || n.Pending != 5 {
			t.Fatal(n, err)
		}
		if _, err := e.Run(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if o, err = e.Await(ctx, op.ID, time.Minute); nixie.CodeOf(err) != nixie.CodeUnavailable || o.UnderWay != 5 {
			t.Errorf("interrupted: %+v, %v", o, err)
		}
		defer st.handle(t, time.Second, true)()
		if o, err = e.Await(t.Context(), op.ID, time.Minute); err != nil || o != (store.Outcome{Succeeded: 5}) {
			t.Errorf("repaired: %+v, %v", o, err)
		}
	})
}

// handled is a store with a worker, in the time of a bubble.
type handled struct{ store.Store }

func probed(t *testing.T, c redrive.Config, letters int) (handled, *redrive.Engine, store.Operation) {
	t.Helper()
	clock := newClock()
	st := handled{memory.New(memory.Options{Clock: clock.Now})}
	bury(t, st.Store, clock, letters, nil)
	c.Store = st
	e, err := redrive.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return st, e, plan(t, e, 0)
}

// handle runs a worker with one goroutine, which takes some time for each message. It ends when the
// function that it returns is called.
func (s handled) handle(t *testing.T, takes time.Duration, repaired bool) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			ds, err := s.Claim(context.Background(), "orders", nixie.Want{Max: 8})
			if err != nil {
				t.Error(err)
				return
			}
			if len(ds) == 0 {
				<-time.After(time.Millisecond)
				continue
			}
			<-time.After(takes)
			for _, d := range ds {
				done := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
				if !repaired {
					done = dying(d, newClock())
				}
				if err := errors.Join(s.Settle(context.Background(), []nixie.Settlement{done})...); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	return func() { cancel(); <-over }
}
