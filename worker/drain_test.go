package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// R16: at shutdown the worker gives back all deliveries that no handler has begun.
func TestR16_UnstartedGoBack(t *testing.T) {
	for _, settleEach := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{feed: [][]*nixie.Delivery{deliveries(100)}}
			var began atomic.Int64
			g := start(t, worker.Config{Source: src, Concurrency: 4, SettleEach: settleEach,
				Handler: handler(func(context.Context, *nixie.Delivery) error {
					began.Add(1)
					time.Sleep(10 * time.Second)
					return nil
				})})
			time.Sleep(time.Second)
			g.stop()
			time.Sleep(time.Second)
			released := len(src.verbs()) // at once, not when the handlers end
			g.end()
			count := map[nixie.Verb]int{}
			for _, verb := range src.verbs() {
				count[verb]++
			}
			if released != 96 || count[nixie.Release] != 96 || count[nixie.Complete] != 4 || began.Load() != 4 {
				t.Errorf("%d released at once; %v; %d began", released, count, began.Load())
			}
		})
	}
}

func TestDrain(t *testing.T) {
	listening := func(err error) func(context.Context, *nixie.Delivery) error {
		return func(ctx context.Context, _ *nixie.Delivery) error {
			<-ctx.Done()
			if err != nil {
				return err
			}
			return ctx.Err()
		}
	}
	tests := []struct {
		name  string
		drain time.Duration
		abort string
		do    func(context.Context, *nixie.Delivery) error
		took  time.Duration
		verb  nixie.Verb
	}{
		{"patience", time.Minute, "", listening(nil), time.Minute, nixie.Release},
		{"default", 0, "", listening(errBoom), 30 * time.Second, nixie.Release},
		{"none", -1, "", listening(fmt.Errorf("query: %w", errBoom)), 0, nixie.Release},
		{"abort before", time.Minute, "before", listening(nil), 0, nixie.Release},
		{"abort long before", time.Minute, "long before", listening(nil), 0, nixie.Release},
		{"abort after", time.Minute, "after", listening(nil), 3 * time.Second, nixie.Release},
		{"explicit", -1, "", listening(nixie.Permanent(errBoom)), 0, nixie.Bury},
		{"verdict", -1, "", listening(nixie.Verdict(nixie.Discard, errBoom)), 0, nixie.Discard},
		{"command killed", -1, "", listening(nixie.WithReason(nixie.Transient(errBoom), nixie.ReasonCanceled)), 0, nixie.Release},
		{"panics", -1, "", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); panic("boom") }, 0, nixie.Retry},
		{"succeeds", -1, "", func(ctx context.Context, _ *nixie.Delivery) error { <-ctx.Done(); return nil }, 0, nixie.Complete},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
				g := start(t, worker.Config{Source: src, Drain: test.drain, Handler: handler(test.do)})
				time.Sleep(time.Second)
				switch test.abort {
				case "long before":
					g.Abort()
					time.Sleep(time.Minute)
				case "before":
					g.Abort()
				case "after":
					time.AfterFunc(3*time.Second, func() { g.Abort(); g.Abort() })
				}
				begun := time.Now()
				g.end()
				if took := time.Since(begun); took < test.took || took > test.took+100*time.Millisecond {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if got := src.verbs()["it"]; got != test.verb {
					t.Errorf("settled as %q, want %s", got, test.verb)
				}
			})
		})
	}
}

func TestStuckForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		src := &script{feed: [][]*nixie.Delivery{deliveries(3)}}
		g := start(t, worker.Config{Source: src, Concurrency: 1,
			Handler: handler(func(context.Context, *nixie.Delivery) error { <-free; return nil })})
		time.Sleep(time.Second)
		g.stop()
		begun := time.Now()
		if err := <-g.done; err != worker.ErrStuck || time.Since(begun) > 40*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		if src.extends > 5 || len(src.verbs()) != 2 {
			t.Errorf("%d renewals, %v", src.extends, src.verbs())
		}
		close(free)
	})
}

// With SettleEach there are never more deliveries begun and not settled than goroutines.
func TestSettleEachBoundsWhatACrashRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int64
		src := &script{feed: [][]*nixie.Delivery{deliveries(1000)}}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			time.Sleep(time.Millisecond)
			open.Add(-int64(len(sts)))
			return make([]error, len(sts))
		}
		g := start(t, worker.Config{Source: src, Concurrency: 7, SettleEach: true,
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				n := open.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					continue
				}
				if d.Key == "500" {
					panic("goes on")
				}
				return nil
			})})
		time.Sleep(time.Minute)
		if len(src.verbs()) != 1000 || most.Load() > 7 {
			t.Errorf("%d settled, %d at once", len(src.verbs()), most.Load())
		}
		g.end()
	})
}
