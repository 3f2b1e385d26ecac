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

func fill(t *testing.T, st *memory.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key}); err != nil {
			t.Fatal(err)
		}
	}
}

func info(t *testing.T, st *memory.Store) store.QueueInfo {
	t.Helper()
	all, err := st.Queues(t.Context(), store.QueueQuery{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

func message(t *testing.T, st *memory.Store, key string) store.Record {
	t.Helper()
	all, _, err := st.Messages(t.Context(), nixie.Filter{Keys: []string{key}}, store.Page{Whole: true})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

func sound(t *testing.T, st *memory.Store) {
	t.Helper()
	report, err := st.Check(t.Context())
	if err != nil || len(report.Violations) > 0 {
		t.Error(report, err)
	}
}

// R11: two workers never hold the same item at once.
func TestR11_NoItemIsHeldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := memory.New(memory.Options{})
		var keys []string
		for i := range 300 {
			keys = append(keys, fmt.Sprint(i))
		}
		fill(t, first, keys...)
		var holders, ran sync.Map
		var workers []*going
		for _, st := range []*memory.Store{first, first.Join("second"), first.Join("third")} {
			workers = append(workers, start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 3, Lease: time.Second,
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if _, held := holders.LoadOrStore(d.ID, true); held {
						t.Errorf("%s is held twice", d.Key)
					}
					defer holders.Delete(d.ID)
					ran.Store(d.ID, true)
					wait(ctx, time.Duration(len(d.Key))*400*time.Millisecond)
					return ctx.Err()
				})}))
		}
		time.Sleep(5 * time.Minute)
		for _, g := range workers {
			g.end()
		}
		if got := info(t, first); got.Succeeded != 300 {
			t.Errorf("%+v", got)
		}
		sound(t, first)
	})
}

// R12: a worker that comes late changes nothing and is told so.
func TestR12_LateSettleIsRefusedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "it")
		seen := &troubles{}
		late := start(t, worker.Config{Source: &cutOff{Source: store.NewSource(st, "q")}, Concurrency: 1,
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				time.Sleep(45 * time.Second) // beyond its lease, which is not renewed
				return nil
			}), Observer: seen.observer()})
		time.Sleep(time.Second)
		var ran atomic.Int64
		other := start(t, worker.Config{Source: store.NewSource(st.Join("other"), "q"),
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				ran.Add(1)
				return nil
			})})
		time.Sleep(10 * time.Minute)
		late.end()
		other.end()
		if _, _, lost := seen.count(); lost != 1 || ran.Load() != 1 {
			t.Errorf("told %d times, %d ran", lost, ran.Load())
		}
		m := message(t, st, "it")
		if m.State != nixie.Succeeded || m.Crashes != 1 || len(m.History) != 1 || m.History[0].Reason != nixie.ReasonLeaseExpired {
			t.Errorf("%+v", m)
		}
		sound(t, st)
	})
}

// cutOff is a source that can claim and settle but not renew.
type cutOff struct{ *store.Source }

func (c *cutOff) Extend(_ context.Context, ds []*nixie.Delivery, _ time.Duration) []error {
	return each(len(ds), coded(nixie.CodeUnavailable))
}

// R13: an item that kills its worker every time dies. That takes as many kills as the parallelism
// can be halved, and two more. Max_attempts does not count. Each other message of the batch runs at
// most once more for each kill, and one in another group does not.
func TestR13_KillerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parallel, most = 4, 4 // log2 of 4, and 2
		pol, err := policy.New(policy.Config{MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		first := memory.New(memory.Options{})
		var keys []string
		for i := range 20 {
			keys = append(keys, fmt.Sprint(i))
		}
		fill(t, first, append(keys, "killer")...)
		runs := map[string]int{}
		var mu sync.Mutex
		var zombies []*going
		kills := 0
		for alive := true; alive; {
			alive = false
			st := first.Join(fmt.Sprint("process ", kills))
			killed := make(chan struct{})
			g := start(t, worker.Config{Policy: pol, Source: store.NewSource(st, "q"), Concurrency: parallel,
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					mu.Lock()
					runs[d.Key]++
					mu.Unlock()
					if d.Key == "killer" {
						st.Crash()
						close(killed)
					}
					time.Sleep(time.Second)
					return nil
				})})
			select {
			case <-killed:
				kills++
				alive = true
				zombies = append(zombies, g)
			case <-time.After(10 * time.Minute):
				g.end()
			}
		}
		for _, z := range zombies {
			if err := <-z.done; !errors.Is(err, nixie.ErrClosed) {
				t.Errorf("the worker of a killed process ended with %v", err)
			}
		}
		if kills != most {
			t.Errorf("%d kills, want %d", kills, most)
		}
		if m := message(t, first, "killer"); m.State != nixie.Dead || m.Crashes != most || m.Attempts != 0 || len(m.History) != most {
			t.Errorf("killer: %+v", m)
		}
		letters, _, err := first.Letters(t.Context(), nixie.Filter{}, store.Page{})
		if err != nil || len(letters) != 1 || letters[0].Cause != nixie.CausePoison || !letters[0].NeedsReview {
			t.Errorf("%+v, %v", letters, err)
		}
		for _, key := range keys {
			if m := message(t, first, key); m.State != nixie.Succeeded || runs[key] > 2 {
				t.Errorf("%s is %s after %d runs", key, m.State, runs[key])
			}
		}
		sound(t, first)
	})
}

// R14: a release refunds the attempt, not the delivery. So an endless loop of releases ends at
// max_deliveries.
func TestR14_ReleasesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pol, err := policy.New(policy.Config{MaxAttempts: 2, MaxDeliveries: 7})
		if err != nil {
			t.Fatal(err)
		}
		st := memory.New(memory.Options{})
		fill(t, st, "it")
		var seen []string
		g := start(t, worker.Config{Policy: pol, Source: store.NewSource(st, "q"),
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				seen = append(seen, fmt.Sprint(d.Attempts, d.Deliveries))
				return nixie.Verdict(nixie.Release, errBoom)
			})})
		time.Sleep(time.Minute)
		g.end()
		if want := []string{"1 1", "1 2", "1 3", "1 4", "1 5", "1 6", "1 7"}; fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("attempts and deliveries were %q", seen)
		}
		if m := message(t, st, "it"); m.State != nixie.Dead || m.Deliveries != 7 {
			t.Errorf("%+v", m)
		}
		sound(t, st)
	})
}

// R14 and R16: drain refunds the attempts of the deliveries that it gives back.
func TestR14_DrainRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		var keys []string
		for i := range 50 {
			keys = append(keys, fmt.Sprint(i))
		}
		var slow atomic.Bool
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 2,
			Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
				if slow.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			})})
		fill(t, st, keys[:10]...)
		time.Sleep(time.Second)
		slow.Store(true)
		fill(t, st, keys[10:]...)
		time.Sleep(time.Second)
		leased := info(t, st).Leased
		g.end()
		if got := info(t, st); leased < 3 || got.Succeeded != 10 || got.Ready+got.Scheduled != 40 || got.Leased != 0 {
			t.Errorf("%d leased before; %+v", leased, got)
		}
		refunded := 0
		for _, key := range keys[10:] {
			m := message(t, st, key)
			if m.Attempts != 0 || len(m.History) != 0 {
				t.Errorf("%s: %d attempts", key, m.Attempts)
			}
			refunded += m.Deliveries
		}
		if refunded != int(leased) {
			t.Errorf("%d deliveries, %d were leased", refunded, leased)
		}
		sound(t, st)
	})
}

// mute is a store without wake-ups: they are hints and may get lost.
type mute struct{ store.Queue }

// R17: without a wake-up work is picked up within the poll interval.
func TestR17_LostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		ran := make(chan time.Time, 1)
		g := start(t, worker.Config{Source: store.NewSource(mute{st}, "q"), Handler: handler(func(context.Context, *nixie.Delivery) error {
			ran <- time.Now()
			return nil
		})})
		for range 20 {
			time.Sleep(1234 * time.Millisecond)
			at := time.Now()
			fill(t, st, "it")
			if took := (<-ran).Sub(at); took > 100*time.Millisecond {
				t.Errorf("picked up after %s", took)
			}
		}
		g.end()
	})
}

// A command that decides about a failure can fail itself. The letter keeps both failures.
func TestSecondFailureIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "it")
		pol, err := policy.New(policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Decider: doubting{pol},
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				return nixie.Permanent(errBoom)
			})})
		time.Sleep(time.Second)
		g.end()
		m := message(t, st, "it")
		if m.State != nixie.Dead || len(m.History) != 2 || m.History[0].Text != "boom" || m.History[1].Text != "no answer" ||
			m.LastFailure != "no answer" {
			t.Errorf("%+v", m)
		}
	})
}

type doubting struct{ *policy.Policy }

func (p doubting) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	st := p.Policy.Decide(d, f, now)
	second := *st.Failure
	second.Text = "no answer"
	st.Second = &second
	return st
}
