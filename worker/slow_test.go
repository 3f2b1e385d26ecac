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

// sluggish is a source that is slow with letters.
type sluggish struct{ *script }

func (sluggish) Slow(st *nixie.Settlement) bool { return st.Verb == nixie.Bury }

// bad fails for good if the key is even.
func bad(_ context.Context, d *nixie.Delivery) error {
	if d.Key[len(d.Key)-1]%2 == 0 {
		return nixie.Permanent(errBoom)
	}
	return nil
}

// Slow settlements hold up no others and use at most two calls at a time. A worker that ends waits
// for them.
func TestSlowSettlementsHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{deliveries(10), {delivery("20"), delivery("21")}, {delivery("32"), delivery("33")},
			{delivery("44"), delivery("45")}}}
		var slow, most atomic.Int32
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			if sts[0].Verb == nixie.Bury {
				if n := slow.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(10 * time.Second)
				slow.Add(-1)
			}
			return make([]error, len(sts))
		}
		g := start(t, worker.Config{Source: sluggish{src}, Handler: handler(bad)})
		time.Sleep(9 * time.Second)
		if done := src.verbs(); len(done) != 8 || g.InHand() != 8 {
			t.Errorf("settled %v, %d in hand", done, g.InHand())
		}
		g.end()
		if done := src.verbs(); len(done) != 16 || most.Load() != 2 || g.InHand() != 0 {
			t.Errorf("settled %v, %d calls at a time, %d in hand", done, most.Load(), g.InHand())
		}
	})
}

// A slow settlement that fails is repeated after a pause, and the others go on meanwhile.
func TestSlowSettlementsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{deliveries(4), {delivery("14")}, {delivery("25")}}}
		var broken atomic.Bool
		broken.Store(true)
		var calls atomic.Int32
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			errs := make([]error, len(sts))
			if sts[0].Verb == nixie.Bury {
				calls.Add(1)
				for i := range errs {
					if broken.Load() {
						errs[i] = coded(nixie.CodeUnavailable)
					}
				}
			}
			return errs
		}
		g := start(t, worker.Config{Source: sluggish{src}, Handler: handler(bad)})
		time.Sleep(5 * time.Second)
		if done := src.verbs(); len(done) != 3 || calls.Load() < 2 || calls.Load() > 50 {
			t.Errorf("settled %v, %d calls", done, calls.Load())
		}
		broken.Store(false)
		time.Sleep(5 * time.Second)
		g.end()
		if done := src.verbs(); len(done) != 6 || done["14"] != nixie.Bury {
			t.Errorf("settled %v", done)
		}
	})
}

// While all slow settlements fail, new ones wait for the next repeat. A call for each would keep a
// failing source busy with nothing else.
func TestSlowSettlementsWaitForTheNextRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const letters = 200
		var calls atomic.Int32
		var repaired atomic.Bool
		src := &script{settle: func(_ context.Context, sts []nixie.Settlement) []error {
			if sts[0].Verb != nixie.Bury || repaired.Load() {
				return each(len(sts), nil)
			}
			calls.Add(1)
			return each(len(sts), coded(nixie.CodeUnavailable))
		}, feed: [][]*nixie.Delivery{{delivery("1")}}} // succeeds, so that the worker knows how much it may have in hand
		for n := range letters {
			src.feed = append(src.feed, []*nixie.Delivery{delivery(fmt.Sprint(2 * n))})
		}
		g := start(t, worker.Config{Source: sluggish{src}, Concurrency: 1,
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				time.Sleep(10 * time.Millisecond)
				return bad(ctx, d)
			})})
		time.Sleep(3 * time.Second)
		if n := calls.Load(); n < 2 || n > 10 || g.InHand() != letters {
			t.Errorf("%d calls about %d letters", n, g.InHand())
		}
		repaired.Store(true)
		g.end()
		if done := src.verbs(); len(done) != letters+1 {
			t.Errorf("%d settled", len(done))
		}
	})
}

// While two slow calls are under way, further slow settlements gather for the next one. In the end
// all are settled.
func TestSlowSettlementsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const letters = 100
		var calls, out, most atomic.Int32
		src := &script{settle: func(_ context.Context, sts []nixie.Settlement) []error {
			calls.Add(1)
			most.Store(max(most.Load(), out.Add(1)))
			time.Sleep(10 * time.Second)
			out.Add(-1)
			return make([]error, len(sts))
		}}
		for n := range letters {
			src.feed = append(src.feed, []*nixie.Delivery{delivery(fmt.Sprint(2 * n))})
		}
		g := start(t, worker.Config{Source: sluggish{src}, Concurrency: 1,
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				time.Sleep(10 * time.Millisecond)
				return bad(ctx, d)
			})})
		time.Sleep(time.Minute)
		g.end()
		if done := src.verbs(); len(done) != letters || most.Load() != 2 || calls.Load() > 10 {
			t.Errorf("%d settled in %d calls, %d at a time", len(done), calls.Load(), most.Load())
		}
	})
}

// A slow call has no time limit. Only the end of the worker ends it, and the worker does not wait
// for ever.
func TestSlowCallsEndWithTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped time.Time
		src := &script{feed: [][]*nixie.Delivery{{delivery("2")}}}
		src.settle = func(ctx context.Context, sts []nixie.Settlement) []error {
			<-ctx.Done()
			if took := time.Since(stopped); stopped.IsZero() || took < 20*time.Second {
				t.Errorf("its context ended %s after the worker was stopped", took)
			}
			return []error{coded(nixie.CodeOutcomeUnknown)}
		}
		seen := &troubles{}
		g := start(t, worker.Config{Source: sluggish{src}, Handler: handler(bad), Observer: seen.observer()})
		time.Sleep(10 * time.Minute)
		if g.InHand() != 1 {
			t.Errorf("%d in hand", g.InHand())
		}
		stopped = time.Now()
		g.end()
		if took := time.Since(stopped); took > 31*time.Second || len(seen.errs) != 1 {
			t.Errorf("it took %s, and said %v", took, seen.errs)
		}
	})
}
