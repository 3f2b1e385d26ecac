package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// A source that breaks its contract does not break the worker.

func TestB076_ReceiveFailsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		begun := time.Now()
		src := &script{}
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			calls.Add(1)
			switch since := time.Since(begun); {
			case since < time.Minute:
				return nil, coded(nixie.CodeUnavailable)
			case since < 66*time.Second:
				begun = begun.Add(-time.Hour)
				return deliveries(1), nil
			}
			wait(ctx, want.Wait)
			return nil, nil
		}
		seen := &troubles{}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed), Observer: seen.observer()})
		time.Sleep(time.Minute - time.Second)
		if n := calls.Load(); n < 10 || n > 30 {
			t.Errorf("%d calls in a minute", n)
		}
		time.Sleep(10 * time.Second)
		if len(src.verbs()) != 1 {
			t.Error("not picked up within the longest pause")
		}
		g.end()
		if n, _, _ := seen.count(); n < 10 {
			t.Errorf("%d troubles told", n)
		}
	})
}

func TestReceiveThatDoesNotWaitIsNoTightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		src := &script{receive: func(context.Context, nixie.Want) ([]*nixie.Delivery, error) { calls++; return nil, nil }}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed)})
		time.Sleep(time.Second)
		g.end()
		if calls > 110 {
			t.Errorf("%d calls in a second", calls)
		}
	})
}

func TestReceiveWithAnErrorAndDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := false
		src := &script{}
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			if given {
				wait(ctx, want.Wait)
				return nil, nil
			}
			given = true
			return deliveries(2), errBoom
		}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed)})
		time.Sleep(time.Second)
		g.end()
		if len(src.verbs()) != 2 {
			t.Errorf("settled %v", src.verbs())
		}
	})
}

func TestReceiveReturnsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		src.receive = func(ctx context.Context, _ nixie.Want) ([]*nixie.Delivery, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return deliveries(3), nil
		}
		g := start(t, worker.Config{Source: src,
			Handler: handler(func(context.Context, *nixie.Delivery) error { t.Error("run"); return nil })})
		time.Sleep(time.Millisecond)
		g.end()
		for _, verb := range src.verbs() {
			if verb != nixie.Release {
				t.Error(verb)
			}
		}
		if len(src.verbs()) != 3 {
			t.Errorf("settled %v", src.verbs())
		}
	})
}

func TestB053_ReceiveThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &troubles{}
		src := &script{}
		src.receive = func(context.Context, nixie.Want) ([]*nixie.Delivery, error) {
			time.Sleep(time.Hour)
			return deliveries(3), nil
		}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed), Observer: seen.observer()})
		time.Sleep(time.Second)
		g.stop()
		begun := time.Now()
		if err := <-g.done; !errors.Is(err, worker.ErrStuck) {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("took %s", took)
		}
		time.Sleep(time.Hour)
		if n, _, _ := seen.count(); n != 1 || g.InHand() != 0 {
			t.Errorf("%d troubles, %d in hand", n, g.InHand())
		}
	})
}

func TestB098_AnswersOfWrongLength(t *testing.T) {
	for _, n := range []int{0, 1, 7} {
		synctest.Test(t, func(t *testing.T) {
			seen := &troubles{}
			src := &script{feed: [][]*nixie.Delivery{deliveries(3)}}
			var broken atomic.Bool
			broken.Store(true)
			src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
				if broken.Load() {
					return each(n, errBoom)
				}
				return make([]error, len(sts))
			}
			src.extend = func(context.Context, []*nixie.Delivery) []error { return each(n, nil) }
			g := start(t, worker.Config{Source: src, Handler: handler(succeed), Observer: seen.observer()})
			time.Sleep(15 * time.Second)
			broken.Store(false)
			time.Sleep(5 * time.Second)
			g.end()
			if len(src.verbs()) != 3 {
				t.Errorf("%d answers: settled %v", n, src.verbs())
			}
		})
	}
}

// The worker repeats settlements that fail. It neither loses one nor sends it twice, and they do
// not hold up others.
func TestSettleFails(t *testing.T) {
	for _, code := range []nixie.Code{nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeInternal} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				calls := 0
				ds := deliveries(100)
				src := &script{feed: [][]*nixie.Delivery{ds[:1], ds[1:]}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
					calls++
					errs := make([]error, len(sts))
					for i, st := range sts {
						if st.Delivery.Key == "0" && time.Since(begun) < 20*time.Second {
							errs[i] = coded(code)
						}
					}
					return errs
				}
				g := start(t, worker.Config{Source: src, Concurrency: 4,
					Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
						if d.Key != "0" {
							wait(ctx, 50*time.Millisecond) // it fails alone first
						}
						return nil
					})})
				time.Sleep(3 * time.Second)
				if n := len(src.verbs()); n != 99 {
					t.Errorf("%d settled together with the one that fails", n)
				}
				time.Sleep(30 * time.Second)
				g.end()
				if len(src.verbs()) != 100 || calls > 120 {
					t.Errorf("%d settled, %d calls", len(src.verbs()), calls)
				}
			})
		})
	}
}

// The worker does not hold for ever a delivery that it cannot settle, neither while it runs nor
// when it ends.
func TestSettleNeverWorks(t *testing.T) {
	for _, stopAfter := range []time.Duration{time.Second, 10 * time.Minute} {
		for _, each1 := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				seen := &troubles{}
				src := &script{feed: [][]*nixie.Delivery{deliveries(5)}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error { return each(len(sts), errBoom) }
				g := start(t, worker.Config{Source: src, Concurrency: 1, SettleEach: each1, Handler: handler(succeed),
					Observer: seen.observer()})
				time.Sleep(stopAfter)
				if stopAfter > time.Minute && !each1 && g.InHand() > 0 {
					t.Errorf("%d still in hand", g.InHand())
				}
				begun := time.Now()
				g.end()
				if took := time.Since(begun); took > 70*time.Second {
					t.Errorf("took %s to end", took)
				}
				if n, _, _ := seen.count(); n == 0 {
					t.Error("the observer was not told")
				}
			})
		}
	}
}

func TestSettleThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{deliveries(5)}}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			time.Sleep(time.Hour)
			return make([]error, len(sts))
		}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed)})
		time.Sleep(time.Second)
		g.stop()
		begun := time.Now()
		if err := <-g.done; !errors.Is(err, worker.ErrStuck) || time.Since(begun) > 2*time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestSettleRefused(t *testing.T) {
	for code, told := range map[nixie.Code]int{nixie.CodeLeaseLost: 0, nixie.CodeConflict: 3, nixie.CodeInvalid: 3} {
		synctest.Test(t, func(t *testing.T) {
			seen := &troubles{}
			var calls atomic.Int64
			src := &script{feed: [][]*nixie.Delivery{deliveries(3)}}
			src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
				calls.Add(int64(len(sts)))
				return each(len(sts), coded(code))
			}
			g := start(t, worker.Config{Source: src, Handler: handler(succeed), Observer: seen.observer()})
			time.Sleep(time.Second)
			if n, _, _ := seen.count(); n != told || calls.Load() != 3 || g.InHand() != 0 {
				t.Errorf("%s: %d told, %d sent, %d in hand", code, n, calls.Load(), g.InHand())
			}
			g.end()
		})
	}
}

func TestConfig(t *testing.T) {
	good := worker.Config{Source: &script{}, Handler: handler(succeed)}
	tests := map[string]func(*worker.Config){
		"source":       func(c *worker.Config) { c.Source = nil },
		"handler":      func(c *worker.Config) { c.Handler = nil },
		"concurrency":  func(c *worker.Config) { c.Concurrency = -1 },
		"concurrency ": func(c *worker.Config) { c.Concurrency = nixie.MaxBatch + 1 },
		"prefetch":     func(c *worker.Config) { c.Concurrency, c.Prefetch = 4, 3 },
		"lease":        func(c *worker.Config) { c.Lease = time.Millisecond },
		"timeout":      func(c *worker.Config) { c.Timeout = -2 },
		"drain":        func(c *worker.Config) { c.Drain = -2 },
	}
	for name, spoil := range tests {
		c := good
		spoil(&c)
		if _, err := worker.New(c); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	good.Concurrency = nixie.MaxBatch
	if _, err := worker.New(good); err != nil {
		t.Error(err)
	}
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, worker.Config{Source: &script{}, Handler: handler(succeed), Concurrency: 500})
		synctest.Wait()
		if err := g.Run(t.Context()); nixie.CodeOf(err) != nixie.CodeConflict {
			t.Error(err)
		}
		g.end()
	})
}
