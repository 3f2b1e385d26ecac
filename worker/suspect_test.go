package worker_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// Abandoned messages are judged and not run.
func TestAbandonedIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, dead := suspect("again", 1), suspect("dead", 5)
		for _, d := range []*nixie.Delivery{again, dead} {
			d.Abandoned, d.AbandonedBy = true, "another worker"
			d.Attempts = 0
		}
		dead.AbandonedAlone = true
		src := &script{feed: [][]*nixie.Delivery{{again}, {dead}}}
		g := start(t, worker.Config{Source: src,
			Handler: handler(func(context.Context, *nixie.Delivery) error { t.Error("run"); return nil })})
		time.Sleep(time.Second)
		g.end()
		if got := src.verbs(); got["again"] != nixie.Retry || got["dead"] != nixie.Bury {
			t.Errorf("settled %v", got)
		}
		if f := src.failure(t, "again"); f.Reason != nixie.ReasonLeaseExpired || f.Worker != "another worker" {
			t.Errorf("%+v", f)
		}
	})
}

// Suspects run in groups that halve with each crash, with nothing else in hand. The worker asks for
// them only when nothing is in hand.
func TestSuspects(t *testing.T) {
	const parallel = 8
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		fresh := deliveries(100)
		var waiting [5][]*nixie.Delivery // by crashes
		for i := range 20 {
			waiting[1+i%4] = append(waiting[1+i%4], suspect("suspect "+string(rune('a'+i)), 1+i%4))
		}
		var g *going
		started := make(chan struct{}) // closed when g is set
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			<-started
			if want.NoSuspects != (g.InHand() > 0) || want.Parallel != parallel {
				t.Errorf("wants %+v with %d in hand", want, g.InHand())
			}
			for crashes, list := range waiting {
				if n := min(len(list), lease.GroupSize(want.Parallel, crashes)); n > 0 && len(fresh) < 50 {
					if want.NoSuspects {
						wait(ctx, want.Wait)
						return nil, nil
					}
					waiting[crashes] = list[n:]
					return list[:n], nil
				}
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
		var running, group atomic.Int64
		g = start(t, worker.Config{Source: src, Concurrency: parallel, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			n := running.Add(1)
			if d.Crashes > 0 {
				group.Store(int64(lease.GroupSize(parallel, d.Crashes)))
			}
			if most := group.Load(); most > 0 && n > most {
				t.Errorf("%d run together with a suspect of %d crashes", n, d.Crashes)
			}
			time.Sleep(100 * time.Millisecond)
			if running.Add(-1) == 0 {
				group.Store(0)
			}
			return nil
		})})
		close(started)
		time.Sleep(time.Minute)
		if n := len(src.verbs()); n != 120 {
			t.Errorf("%d of 120 settled", n)
		}
		g.end()
	})
}

// After a crash the work comes back at once. The 32 messages of a dead process run in groups of
// half the usual size, without a further delay. So they do if the worker was busy with others when
// that process died.
func TestRecoveryTakesSeconds(t *testing.T) {
	const parallel, lost, took = 8, 32, time.Second
	for _, busy := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			first := memory.New(memory.Options{})
			second := first.Join("second")
			for i := range lost {
				fill(t, first, "lost "+strconv.Itoa(i))
			}
			if ds, err := first.Claim(t.Context(), "q", nixie.Want{Max: lost}); err != nil || len(ds) != lost {
				t.Fatalf("%d claimed: %v", len(ds), err)
			}
			for i := range busy {
				fill(t, first, "busy "+strconv.Itoa(i))
			}
			g := start(t, worker.Config{Source: store.NewSource(second, "q"), Concurrency: parallel,
				Handler: handler(func(context.Context, *nixie.Delivery) error {
					time.Sleep(took)
					return nil
				})})
			time.Sleep(took / 2)
			first.Crash()
			began := time.Now()
			for info(t, second).Succeeded < int64(lost+busy) {
				time.Sleep(10 * time.Millisecond)
				if time.Since(began) > time.Minute {
					t.Fatal("it takes more than a minute")
				}
			}
			if all := time.Since(began); all > took*(lost/(parallel/2))+time.Second {
				t.Errorf("with %d others it took %s", busy, all)
			}
			g.end()
		})
	}
}

// If a source returns suspects together with others, all of them run like a group of suspects.
func TestSuspectsInCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		src := &script{feed: [][]*nixie.Delivery{deliveries(8), {suspect("s", 3), delivery("a"), delivery("b")},
			{suspect("t", 2), delivery("c"), delivery("d"), delivery("e")}}}
		g := start(t, worker.Config{Source: src, Concurrency: 8, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			n := running.Add(1)
			defer running.Add(-1)
			if most := map[string]int64{"s": 1, "a": 1, "b": 1, "t": 2, "c": 2, "d": 2, "e": 2}[d.Key]; most > 0 && n > most {
				t.Errorf("%s runs together with %d others", d.Key, n-1)
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

// The worker holds at most a quarter of a lease of work, and never more than Prefetch.
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
			g := start(t, worker.Config{Source: src, Concurrency: test.concurrency, Prefetch: test.prefetch,
				Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
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

// The worker notices at once that a handler becomes slow.
func TestHandlerBecomesSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{}
		var slow atomic.Bool
		src.receive = func(_ context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			time.Sleep(10 * time.Millisecond)
			return deliveries(want.Max), nil
		}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Prefetch: 50,
			Handler: handler(func(context.Context, *nixie.Delivery) error {
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
