package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// hands is a clock that only the test moves.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func newDesk(t *testing.T, src nixie.Source, clock *hands, seen *troubles) *worker.Desk {
	t.Helper()
	desk, err := worker.NewDesk(worker.Config{Source: src, Clock: clock.Now, Observer: seen.observer()})
	if err != nil {
		t.Fatal(err)
	}
	return desk
}

func claim(t *testing.T, desk *worker.Desk, n int) []*nixie.Delivery {
	t.Helper()
	ds, err := desk.Receive(t.Context(), nixie.Want{Max: 10})
	if err != nil || len(ds) != n {
		t.Fatalf("%d deliveries, want %d, %v", len(ds), n, err)
	}
	return ds
}

func TestDesk(t *testing.T) {
	clock := &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	st := memory.New(memory.Options{Clock: clock.Now})
	fill(t, st, "good", "bad", "unstarted", "late")
	seen := &troubles{}
	desk := newDesk(t, store.NewSource(st, "q"), clock, seen)

	ds := claim(t, desk, 4)
	begun := clock.Now()
	clock.move(20 * time.Second)
	for _, err := range desk.Extend(t.Context(), ds[:3], 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	clock.move(20 * time.Second)
	if s, err := desk.Done(t.Context(), ds[0], nil, begun); err != nil || s.Verb != nixie.Complete {
		t.Error(s, err)
	}
	s, err := desk.Done(t.Context(), ds[1], nixie.Permanent(errBoom), begun)
	if err != nil || s.Verb != nixie.Bury || s.Failure.Took != 40*time.Second {
		t.Error(s, err)
	}
	if err := desk.Release(t.Context(), ds[2:3])[0]; err != nil {
		t.Error(err)
	}
	if _, err := desk.Done(t.Context(), ds[3], nil, begun); nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("late: %v", err)
	}
	// Receive judges the late one, and the attempt of the unstarted one was refunded.
	claim(t, desk, 0)
	late := claim(t, desk, 1)
	if late[0].Key != "late" || late[0].Attempts != 1 {
		t.Errorf("%+v", late[0].Message)
	}
	if again := claim(t, desk, 1); again[0].Key != "unstarted" || again[0].Attempts != 1 || again[0].Deliveries != 2 {
		t.Errorf("%+v", again[0].Message)
	}
	if m := message(t, st, "late"); m.Crashes != 1 || len(m.History) != 1 || m.History[0].Reason != nixie.ReasonLeaseExpired {
		t.Errorf("%+v", m)
	}
	if _, _, lost := seen.count(); lost != 1 {
		t.Errorf("told %d", lost)
	}
	sound(t, st)
}

func TestDeskOnABadDay(t *testing.T) {
	clock := &hands{}
	damaged, expired, abandoned := delivery("damaged"), delivery("expired"), suspect("abandoned", 1)
	damaged.Hash[0] = 1
	expired.ExpiresAt = clock.now.Add(time.Second)
	clock.move(time.Minute)
	abandoned.Abandoned = true
	src := &script{feed: [][]*nixie.Delivery{{damaged, delivery("good"), expired, abandoned}}}
	seen := &troubles{}
	desk := newDesk(t, src, clock, seen)
	if ds := claim(t, desk, 1); ds[0].Key != "good" {
		t.Error(ds[0].Key)
	}
	if got := src.verbs(); got["damaged"] != nixie.Bury || got["expired"] != nixie.Bury || got["abandoned"] != nixie.Retry {
		t.Errorf("settled %v", got)
	}

	// If judging one message fails, the others still run.
	src.settle = func(context.Context, []nixie.Settlement) []error { return nil }
	src.feed = [][]*nixie.Delivery{{damaged, delivery("good")}, {damaged}}
	claim(t, desk, 1)
	if n, _, _ := seen.count(); n != 1 {
		t.Errorf("told %d", n)
	}
	if ds, err := desk.Receive(t.Context(), nixie.Want{Max: 1}); len(ds) != 0 || nixie.CodeOf(err) != nixie.CodeInternal {
		t.Error(ds, err)
	}
	if _, err := desk.Done(t.Context(), delivery("it"), nil, clock.Now()); nixie.CodeOf(err) != nixie.CodeInternal {
		t.Error(err)
	}
	src.extend = func(context.Context, []*nixie.Delivery) []error { return nil }
	if errs := desk.Extend(t.Context(), deliveries(3), time.Second); len(errs) != 3 || errs[2] == nil {
		t.Error(errs)
	}
	src.receive = func(context.Context, nixie.Want) ([]*nixie.Delivery, error) { return nil, errBoom }
	if _, err := desk.Receive(t.Context(), nixie.Want{Max: 1}); err != errBoom {
		t.Error(err)
	}
}

// TestDeskExchanges settles each kind of outcome and claims in one call, over a store and over a
// source that cannot exchange.
func TestDeskExchanges(t *testing.T) {
	for name, over := range map[string]func(nixie.Source) nixie.Source{
		"a source that exchanges": func(s nixie.Source) nixie.Source { return s },
		"a source that does not":  func(s nixie.Source) nixie.Source { return struct{ nixie.Source }{s} },
	} {
		t.Run(name, func(t *testing.T) {
			clock := &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			st := memory.New(memory.Options{Clock: clock.Now})
			fill(t, st, "good", "bad", "unstarted", "late", "next")
			seen := &troubles{}
			desk := newDesk(t, over(store.NewSource(st, "q")), clock, seen)
			ds, err := desk.Receive(t.Context(), nixie.Want{Max: 4})
			if err != nil || len(ds) != 4 {
				t.Fatal(ds, err)
			}
			begun := clock.Now()
			if err := ds[0].Then(nixie.Message{Queue: "answers", Key: "answer"}); err != nil {
				t.Fatal(err)
			}
			if _, err := desk.Done(t.Context(), ds[3], nil, begun); err != nil {
				t.Fatal(err)
			}
			clock.move(time.Second)
			settled, next, err := desk.Exchange(t.Context(), []worker.Outcome{
				{Delivery: ds[0], StartedAt: begun},
				{Delivery: ds[1], Err: nixie.Permanent(errBoom), StartedAt: begun},
				{Delivery: ds[2]},
				{Delivery: ds[3], StartedAt: begun},
			}, nixie.Want{Max: 10})
			if err != nil || len(next) != 2 || next[0].Key != "next" || next[1].Key != "unstarted" || next[1].Attempts != 1 {
				t.Fatalf("next is %v, %v", next, err)
			}
			for i, verb := range []nixie.Verb{nixie.Complete, nixie.Bury, nixie.Release, nixie.Complete} {
				if s := settled[i]; s.Verb != verb || s.Delivery != ds[i] || (s.Err != nil) != (i == 3) {
					t.Errorf("%s: %s, %v", ds[i].Key, s.Verb, s.Err)
				}
			}
			if nixie.CodeOf(settled[3].Err) != nixie.CodeLeaseLost || settled[1].Failure.Took != time.Second {
				t.Errorf("late: %v; bad: %+v", settled[3].Err, settled[1].Failure)
			}
			if m := message(t, st, "answer"); m.Queue != "answers" {
				t.Errorf("%+v", m)
			}
			if _, _, err := desk.Exchange(t.Context(), nil, nixie.Want{Max: 1}); err != nil {
				t.Error(err)
			}
			sound(t, st)
		})
	}
}

// TestDeskExchangesWithARefusal settles again, as Done does, what a closed queue refuses.
func TestDeskExchangesWithARefusal(t *testing.T) {
	clock := &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	st := memory.New(memory.Options{Clock: clock.Now})
	fill(t, st, "a", "b")
	if err := store.Configure(t.Context(), st, "closed", nixie.QueueSettings{Closed: true}, "ann", "r"); err != nil {
		t.Fatal(err)
	}
	desk := newDesk(t, store.NewSource(st, "q"), clock, &troubles{})
	ds, err := desk.Receive(t.Context(), nixie.Want{Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	if err := ds[0].Then(nixie.Message{Queue: "closed"}); err != nil {
		t.Fatal(err)
	}
	settled, next, err := desk.Exchange(t.Context(), []worker.Outcome{{Delivery: ds[0], StartedAt: clock.Now()}}, nixie.Want{Max: 1})
	if err != nil || len(next) != 1 || next[0].Key != "b" {
		t.Fatal(next, err)
	}
	if s := settled[0]; s.Err != nil || s.Verb == nixie.Complete || s.Failure == nil {
		t.Errorf("%s, %v", s.Verb, s.Err)
	}
	sound(t, st)
}
