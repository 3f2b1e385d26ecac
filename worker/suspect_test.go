package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// Abandoned messages are judged and not run.
func TestAbandonedIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, dead := suspect("again", 1), suspect("dead", 5)
		for _, d := range []*nixie.Delivery{again, dead} {
			d.Abandoned, d.AbandonedBy = true, "somebody"
			d.Attempts--
		}
		src := &script{feed: [][]*nixie.Delivery{{again}, {dead}}}
		g := start(t, worker.Config{Source: src, Handler: handler(func(context.Context, *nixie.Delivery) error { t.Error("run"); return nil })})
		time.Sleep(time.Second)
		g.end()
		if got := src.verbs(); got["again"] != nixie.Retry || got["dead"] != nixie.Bury {
			t.Errorf("settled %v", got)
		}
		if f := src.failure(t, "again"); f.Reason != nixie.ReasonLeaseExpired || f.Worker != "somebody" {
			t.Errorf("%+v", f)
		}
	})
}

// One suspect at a time, fresh messages beside the first crash, nothing beside
// later ones.
func TestSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		var suspects, fresh []*nixie.Delivery
		for i := range 20 {
			suspects = append(suspects, suspect("suspect "+string(rune('a'+i)), 1+i%3))
		}
		fresh = deliveries(400)
		var out, running, beside, alone atomic.Int64
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			if !want.Fresh && len(suspects) > 0 {
				if out.Add(1) > 1 {
					t.Error("a second suspect was asked for")
				}
				d := suspects[0]
				suspects = suspects[1:]
				return []*nixie.Delivery{d}, nil
			}
			n := min(want.Max, len(fresh), 10)
			if n == 0 {
				wait(ctx, want.Wait)
				return nil, nil
			}
			got := fresh[:n]
			fresh = fresh[n:]
			return got, nil
		}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			for _, st := range sts {
				if st.Delivery.Crashes > 0 {
					out.Add(-1)
				}
			}
			return make([]error, len(sts))
		}
		g := start(t, worker.Config{Source: src, Concurrency: 4, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			n := running.Add(1)
			if d.Crashes > 1 {
				alone.Add(1)
			}
			if d.Crashes == 1 && n > 1 {
				beside.Add(1)
			}
			if alone.Load() > 0 && n > 1 {
				t.Errorf("%d run while one is alone", n)
			}
			time.Sleep(100 * time.Millisecond)
			if d.Crashes > 1 {
				alone.Add(-1)
			}
			running.Add(-1)
			return nil
		})})
		time.Sleep(time.Minute)
		if n := len(src.verbs()); n != 420 {
			t.Errorf("%d of 420 settled", n)
		}
		if beside.Load() == 0 {
			t.Error("nothing ran beside suspects of one crash")
		}
		g.end()
	})
}

// A source that returns suspects with others has them run one after another.
func TestSuspectsInCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		src := &script{feed: [][]*nixie.Delivery{deliveries(8), {suspect("s", 2), delivery("a"), delivery("b")}}}
		g := start(t, worker.Config{Source: src, Concurrency: 8, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			n := running.Add(1)
			defer running.Add(-1)
			if d.Key >= "a" && n > 1 {
				t.Errorf("%s runs beside %d others", d.Key, n-1)
			}
			time.Sleep(time.Minute)
			return nil
		})})
		time.Sleep(10 * time.Minute)
		g.end()
		for key, verb := range src.verbs() {
			if verb != nixie.Complete {
				t.Errorf("%s: %s", key, verb)
			}
		}
	})
}

// In hand is at most what takes a quarter of a lease, and never more than
// Prefetch.
func TestInHandIsBounded(t *testing.T) {
	tests := []struct {
		took               time.Duration
		concurrency, limit int
		prefetch           int
	}{
		{0, 2, 500, 500},
		{0, 3, 3, 3},
		{time.Second, 2, 2 * 8, 0}, // 7.5 s, rounded up
		{time.Minute, 2, 2, 0},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			src := &script{}
			src.receive = func(_ context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
				time.Sleep(50 * time.Millisecond)
				return deliveries(want.Max), nil
			}
			g := start(t, worker.Config{Source: src, Concurrency: test.concurrency, Prefetch: test.prefetch, Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
				wait(ctx, test.took)
				return nil
			})})
			most, done := 0, 0
			for range 400 {
				time.Sleep(10*time.Millisecond + test.took/8)
				most = max(most, g.InHand())
			}
			g.end()
			for _, st := range src.settled {
				if st.Verb == nixie.Complete {
					done++
				}
			}
			if most > test.limit || done < 3 {
				t.Errorf("%+v: %d in hand, %d done", test, most, done)
			}
		})
	}
}

// A handler that becomes slow is noticed at once.
func TestHandlerBecomesSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		var slow atomic.Bool
		src.receive = func(_ context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			time.Sleep(10 * time.Millisecond)
			return deliveries(want.Max), nil
		}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Prefetch: 50, Handler: handler(func(context.Context, *nixie.Delivery) error {
			if slow.Load() {
				time.Sleep(5 * time.Second)
			}
			return nil
		})})
		time.Sleep(time.Second)
		slow.Store(true)
		time.Sleep(50 * time.Second)
		if n := g.InHand(); n > 4 {
			t.Errorf("%d in hand", n)
		}
		g.end()
	})
}
