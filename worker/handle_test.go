package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// mean is an error whose text cannot be read.
type mean struct{}

func (*mean) Error() string { panic("no text for you") }

// endless wraps itself.
type endless struct{}

func (e endless) Error() string { return "endless" }
func (e endless) Unwrap() error { return e }

type nilled struct{ text string }

func (n *nilled) Error() string { return n.text }

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name   string
		do     func(context.Context, *nixie.Delivery) error
		verb   nixie.Verb
		reason nixie.Reason
	}{
		{"success", succeed, nixie.Complete, ""},
		{"error", func(context.Context, *nixie.Delivery) error { return errBoom }, nixie.Retry, nixie.ReasonHandler},
		{"permanent", func(context.Context, *nixie.Delivery) error { return nixie.Permanent(errBoom) }, nixie.Bury, nixie.ReasonHandler},
		{"verdict", func(context.Context, *nixie.Delivery) error { return nixie.Verdict(nixie.Hold, errBoom) }, nixie.Hold,
			nixie.ReasonHandler},
		{"release", func(context.Context, *nixie.Delivery) error { return nixie.Verdict(nixie.Release, nil) }, nixie.Release, ""},
		{"panic", func(context.Context, *nixie.Delivery) error { panic("boom") }, nixie.Retry, nixie.ReasonPanic},
		//nolint:govet // on purpose
		{"panic nil", func(context.Context, *nixie.Delivery) error { panic(nil) }, nixie.Retry, nixie.ReasonPanic},
		{"panic typed nil", func(context.Context, *nixie.Delivery) error { panic((*nilled)(nil)) }, nixie.Retry, nixie.ReasonPanic},
		{"panic mean", func(context.Context, *nixie.Delivery) error { panic(&mean{}) }, nixie.Retry, nixie.ReasonPanic},
		{"goexit", func(context.Context, *nixie.Delivery) error { runtime.Goexit(); return nil }, nixie.Retry, nixie.ReasonPanic},
		{"mean error", func(context.Context, *nixie.Delivery) error { return &mean{} }, nixie.Retry, nixie.ReasonHandler},
		{"typed nil", func(context.Context, *nixie.Delivery) error { return (*nilled)(nil) }, nixie.Retry, nixie.ReasonHandler},
		{"endless", func(context.Context, *nixie.Delivery) error { return endless{} }, nixie.Retry, nixie.ReasonHandler},
		{"late", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return errBoom }, nixie.Retry, nixie.ReasonTimeout},
		{"late and mean", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return &mean{} }, nixie.Retry, ""},
		{"late and endless", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return endless{} }, nixie.Retry, ""},
		{"late and explicit", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return nixie.Permanent(ctx.Err()) },
			nixie.Bury, nixie.ReasonTimeout},
		{"late success", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return nil }, nixie.Complete, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// One goroutine and a message before and after: the loop goes on.
				src := &script{feed: [][]*nixie.Delivery{{delivery("before"), delivery("it"), delivery("after")}, {delivery("next")}}}
				g := start(t, worker.Config{Source: src, Concurrency: 1, Timeout: 5 * time.Second,
					Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
						if d.Key == "it" {
							return test.do(ctx, d)
						}
						return nil
					})})
				time.Sleep(10 * time.Second)
				g.end()
				want := map[string]nixie.Verb{"before": nixie.Complete, "it": test.verb, "after": nixie.Complete, "next": nixie.Complete}
				if got := src.verbs(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("settled %v, want %v", got, want)
				}
				if test.reason != "" {
					if f := src.failure(t, "it"); f.Reason != test.reason || f.Worker == "" || f.Attempt != 1 {
						t.Errorf("failure is %+v, want reason %s", f, test.reason)
					}
				}
			})
		})
	}
}

type card struct{ number string }

func charge(c *card) int { return len(c.number) }

// The failure of a panic keeps the user's part of the stack, and its top names the group. It leaves
// out the frames that caught the panic and those that called the handler.
func TestPanicNamesTheUsersFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		g := start(t, worker.Config{Source: src, Handler: handler(func(context.Context, *nixie.Delivery) error {
			charge(nil)
			return nil
		})})
		synctest.Wait()
		g.end()
		f := src.failure(t, "it")
		const mine = "github.com/nixie-go/nixie/worker_test.charge"
		lines := strings.Split(strings.TrimRight(f.Stack, "\n"), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[0], "goroutine ") || !strings.HasPrefix(lines[1], mine+"(") ||
			!strings.Contains(lines[3], "TestPanicNamesTheUsersFunction") {
			t.Errorf("the stack is\n%s", f.Stack)
		}
		if len(f.Context) != 1 || !strings.HasPrefix(f.Context[0], "panicked in "+mine+" at ") ||
			!strings.Contains(f.Context[0], "handle_test.go:") {
			t.Errorf("the context is %q", f.Context)
		}
		want := "panic[in worker_test.charge]: runtime error: invalid memory address or nil pointer dereference"
		if label, _ := policy.Signature(f); label != want {
			t.Errorf("the signature is %q, want %q", label, want)
		}
	})
}

func TestDamagedBodyIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := delivery("it")
		d.Body, d.Hash = []byte("this"), nixie.HashBody([]byte("that"))
		src := &script{feed: [][]*nixie.Delivery{{d}}}
		g := start(t, worker.Config{Source: src,
			Handler: handler(func(context.Context, *nixie.Delivery) error { t.Error("run"); return nil })})
		synctest.Wait()
		g.end()
		if f := src.failure(t, "it"); f.Reason != nixie.ReasonSerialization {
			t.Errorf("reason %s", f.Reason)
		}
	})
}

// A handler's context behaves like one of package context.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		var kept context.Context
		g := start(t, worker.Config{Source: src, Timeout: time.Minute, Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
			begun := time.Now()
			if end, ok := ctx.Deadline(); !ok || !end.Equal(begun.Add(time.Minute)) {
				t.Errorf("deadline %v, %v", end, ok)
			}
			if ctx.Value(valueKey{}) != "value" || ctx.Value(otherKey{}) != nil {
				t.Error("values of Run's context are not those of the handler's")
			}
			if ctx.Err() != nil || context.Cause(ctx) != nil {
				t.Error("over before it began")
			}
			child, cancel := context.WithCancel(context.WithValue(ctx, otherKey{}, 1))
			defer cancel()
			short, cancel2 := context.WithTimeout(child, time.Second)
			defer cancel2()
			<-short.Done()
			if child.Err() != nil || child.Value(otherKey{}) != 1 || time.Since(begun) != time.Second {
				t.Error("a child's end is not its parent's")
			}
			after := make(chan struct{})
			context.AfterFunc(child, func() { close(after) })
			never := context.AfterFunc(ctx, func() { t.Error("was stopped") })
			if !never() {
				t.Error("cannot be stopped")
			}
			<-after
			if time.Since(begun) != time.Minute {
				t.Errorf("ended after %s", time.Since(begun))
			}
			for _, c := range []context.Context{ctx, child} {
				if c.Err() != context.DeadlineExceeded || context.Cause(c) != context.DeadlineExceeded {
					t.Errorf("%v because of %v", c.Err(), context.Cause(c))
				}
			}
			kept = ctx
			return nil
		})})
		time.Sleep(2 * time.Minute)
		g.end()
		if kept.Err() != context.DeadlineExceeded {
			t.Errorf("afterwards %v", kept.Err())
		}
	})
}

// Contexts that a handler derived end when it returns.
func TestContextEndsWithHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("it"), delivery("quiet")}}}
		ended := make(chan error, 1)
		var quiet context.Context
		g := start(t, worker.Config{Source: src, Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
			if d.Key == "quiet" {
				quiet = ctx
				return nil
			}
			child, cancel := context.WithTimeout(ctx, time.Hour)
			go func() { <-child.Done(); ended <- child.Err(); cancel() }()
			return nil
		})})
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		synctest.Wait()
		if quiet.Err() != context.Canceled || context.Cause(quiet) != context.Canceled {
			t.Errorf("%v, %v", quiet.Err(), context.Cause(quiet))
		}
		<-quiet.Done()
		g.end()
	})
}

func TestCauseOfTheEnd(t *testing.T) {
	for _, why := range []error{worker.ErrStopping, worker.ErrLeaseLost} {
		for _, early := range []bool{true, false} { // asked for before the end, or after it
			t.Run(fmt.Sprint(why, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
					if why == worker.ErrLeaseLost {
						src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
							return each(len(ds), coded(nixie.CodeLeaseLost))
						}
					}
					g := start(t, worker.Config{Source: src, Drain: -1,
						Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
							lost := d.Lost()
							if early {
								<-ctx.Done()
							}
							time.Sleep(15 * time.Second)
							<-ctx.Done()
							child, cancel := context.WithCancel(ctx)
							defer cancel()
							for _, c := range []context.Context{ctx, child} {
								if c.Err() != context.Canceled || context.Cause(c) != why {
									t.Errorf("%v because of %v", c.Err(), context.Cause(c))
								}
							}
							select {
							case <-lost:
								if why != worker.ErrLeaseLost {
									t.Error("lease counts as lost")
								}
							default:
								if why == worker.ErrLeaseLost {
									t.Error("Lost is not told")
								}
							}
							return errors.New("interrupted")
						})})
					if why == worker.ErrStopping {
						time.Sleep(14 * time.Second)
					} else {
						time.Sleep(time.Minute)
					}
					if early && why == worker.ErrStopping {
						g.stop()
						if err := <-g.done; err != worker.ErrStuck { // it sleeps 15 s
							t.Error(err)
						}
						time.Sleep(time.Minute)
						return
					}
					g.end()
				})
			})
		}
	}
}

// Steps are saved while the handler goes on, and again with the settlement.
func TestStepsAreSavedByRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved atomic.Int64
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			saved.Store(int64(len(lease.NewSteps(ds[0]))))
			return make([]error, len(ds))
		}
		g := start(t, worker.Config{Source: src, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			for i := range 25 {
				if err := d.Step(fmt.Sprint(i), func() error { time.Sleep(time.Second); return nil }); err != nil {
					return err
				}
			}
			return nil
		})})
		time.Sleep(21 * time.Second)
		if n := saved.Load(); n < 18 {
			t.Errorf("%d steps saved after 21 s", n)
		}
		time.Sleep(10 * time.Second)
		g.end()
		if n := len(src.settled[0].Delivery.Steps); n != 25 {
			t.Errorf("%d steps settled", n)
		}
	})
}
