package redrive_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// attended is a store with a worker that handles each redriven message at once.
type attended struct {
	store.Store
	t        *testing.T
	clock    *fakeClock
	repaired bool // handled messages succeed
}

func (s *attended) Resolve(ctx context.Context, list []store.Resolution) []error {
	errs := s.Store.Resolve(ctx, list)
	for {
		ds, err := s.Claim(ctx, "orders", nixie.Want{Max: 1})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(ds) == 0 {
			return errs
		}
		done := nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}
		if !s.repaired {
			done = dying(ds[0], s.clock)
		}
		if err := errors.Join(s.Settle(ctx, []nixie.Settlement{done})...); err != nil {
			s.t.Fatal(err)
		}
	}
}

func dying(d *nixie.Delivery, c *fakeClock) nixie.Settlement {
	return nixie.Settlement{
		Delivery: d, Verb: nixie.Bury,
		Failure: &nixie.Failure{Generation: d.Generation, Attempt: 1, StartedAt: c.Now(), FailedAt: c.Now(),
			Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout, Text: "slow"},
		Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "timeout: slow", Fingerprint: "v1-a",
			Redrivable: true, Rule: "reason:timeout"},
	}
}

// A redrive whose letters die again ends soon and leaves the others as they are. Once the cause is
// repaired the same operation goes on, and earlier deaths do not stop it.
func TestStopsWhenItDiesAgain(t *testing.T) {
	const letters = 200
	for what, c := range map[string]struct {
		stop        redrive.Stop
		least, most int64 // that die again
	}{
		"by default": {redrive.Stop{}, redrive.StopLeast, 20},
		"a number":   {redrive.Stop{After: 3, Share: -1}, 3, 6},
		"half":       {redrive.Stop{Share: 0.5}, redrive.StopLeast, 20},
	} {
		for kind, open := range map[string]func(*fakeClock) store.Store{
			"memory": func(c *fakeClock) store.Store { return memory.New(memory.Options{Clock: c.Now}) },
			"sqlite": func(c *fakeClock) store.Store { return open(t, c) },
		} {
			t.Run(what+" on "+kind, func(t *testing.T) {
				clock := newClock()
				st := &attended{Store: open(clock), t: t, clock: clock}
				bury(t, st.Store, clock, letters, nil)
				e := engine(t, redrive.Config{Store: st, Rate: 40, Stop: c.stop}, clock)
				op := plan(t, e, 0)
				r, err := e.Run(t.Context(), op.ID)
				stopped := (*redrive.StoppedError)(nil)
				if !errors.As(err, &stopped) || nixie.CodeOf(err) != nixie.CodeLimit {
					t.Fatalf("%+v, %v", r.Operation, err)
				}
				if stopped.Again < c.least || stopped.Again > c.most || stopped.Moved != r.Done || r.Outcome.DiedAgain() != r.Done ||
					r.Pending != letters-r.Done {
					t.Errorf("%+v, %+v, %+v", stopped, r.Operation, r.Outcome)
				}
				if got := redriven(t, st, letters); got != r.Done {
					t.Errorf("%d were redriven, %d said", got, r.Done)
				}
				st.repaired = true
				before := r.Outcome.DiedAgain()
				if r, err = e.Run(t.Context(), op.ID); err != nil || r.Done != letters || r.Outcome.DiedAgain() != before ||
					r.Outcome.Succeeded != letters-before || r.Outcome.UnderWay != 0 {
					t.Errorf("repaired: %+v, %+v, %v", r.Operation, r.Outcome, err)
				}
			})
		}
	}
}

// redriven counts the letters that were redriven, and checks that each was at most once.
func redriven(t *testing.T, st store.Store, letters int) (n int64) {
	t.Helper()
	list, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: 10_000})
	if err != nil || len(list) != letters {
		t.Fatalf("%d letters, %v", len(list), err)
	}
	for _, l := range list {
		if l.Message.Redrives > 1 {
			t.Errorf("%s was redriven %d times", l.Message.Key, l.Message.Redrives)
		}
		n += int64(l.Message.Redrives)
	}
	return n
}

// A redrive goes on if few or no letters die again, or if it has no bound. Letters that were
// redriven before do not stop a discard.
func TestGoesOnWhileItMay(t *testing.T) {
	clock := newClock()
	st := &attended{Store: memory.New(memory.Options{Clock: clock.Now}), t: t, clock: clock}
	bury(t, st.Store, clock, 120, nil)
	few := engine(t, redrive.Config{Store: st, Rate: 5}, clock)
	r, err := few.Run(t.Context(), plan(t, few, redrive.StopLeast-1).ID)
	if err != nil || r.Done != redrive.StopLeast-1 || r.Outcome.DiedAgain() != r.Done {
		t.Errorf("few: %+v, %v", r, err)
	}
	never := engine(t, redrive.Config{Store: st, Rate: 40, Stop: redrive.Stop{Share: -1}}, clock)
	if r, err = never.Run(t.Context(), plan(t, never, 0).ID); err != nil || r.Done != 120 || r.Outcome.DiedAgain() != 120 {
		t.Errorf("told to go on: %+v, %v", r, err)
	}
	e := engine(t, redrive.Config{Store: st, Rate: 40, Stop: redrive.Stop{After: 1}}, clock)
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnDiscard, Actor: "ann", Reason: "over"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = e.Run(t.Context(), op.ID); err != nil || r.Done != 120 || r.Outcome != (store.Outcome{}) {
		t.Errorf("discarded: %+v, %v", r, err)
	}
}

func TestStopsAreChecked(t *testing.T) {
	for _, s := range []redrive.Stop{{After: -1}, {Share: 1.5}, {Share: -0.1}} {
		if _, err := redrive.New(redrive.Config{Store: memory.New(memory.Options{}), Stop: s}); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%+v: %v", s, err)
		}
		if _, err := (redrive.Mover{From: newShelf(0), Destination: redrive.Destination{To: &post{}},
			Stop: s}).Run(t.Context()); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A record that dies again at a broker comes to the office as another letter, which names the
// redrive and the letter that it was. Such letters stop it, also those that come before the office
// knows that the broker took the record.
func TestStopsWhenItDiesAgainOnABroker(t *testing.T) {
	clock := newClock()
	var values []string
	for i := range 100 {
		values = append(values, string(rune('a'+i/10))+string(rune('a'+i%10)))
	}
	st := adopted(t, values...)
	p := &post{}
	send, err := redrive.Destination{To: p, Clock: clock.Now}.Letters()
	if err != nil {
		t.Fatal(err)
	}
	dead := 0
	back := func(store.Operation) { // takes what died again into the office
		for ; dead < len(p.sent); dead++ {
			out := p.sent[dead]
			l := broker.Adopted("kafka", &broker.Record{
				Channel: "in.dlq", Offset: int64(1000 + dead), ID: [16]byte{2, 15: byte(dead)}, Key: out.Key, Value: out.Value,
				Headers: out.Headers, Timestamp: clock.Now(),
			}, "")
			if _, errs := st.Adopt(t.Context(), []nixie.Letter{l}, "ann", "died on kafka"); errs[0] != nil {
				t.Fatal(errs[0])
			}
		}
	}
	e := engine(t, redrive.Config{Store: st, Send: send, Rate: 10, Progress: back}, clock)
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(t.Context(), op.ID)
	stopped := (*redrive.StoppedError)(nil)
	if !errors.As(err, &stopped) || r.Done > 40 || r.Outcome != (store.Outcome{SameFailure: r.Done}) || r.Pending != 100-r.Done {
		t.Errorf("%+v, %+v, %v", r.Operation, r.Outcome, err)
	}
}

// followed is a shelf to which records that were sent and died come back.
type followed struct {
	*shelf
	to   *post
	seen int
}

func (f *followed) Since(context.Context) (list []broker.Record, _ error) {
	for ; f.seen < len(f.to.sent); f.seen++ {
		headers := f.to.sent[f.seen].Headers
		if f.seen%2 == 0 { // every other one is none of ours
			headers = []broker.RecordHeader{{Name: broker.HeaderOperation, Value: []byte("01890a5d-ac96-774b-bcce-b302099a8057")}}
		}
		list = append(list, broker.Record{Headers: headers})
	}
	return list, nil
}

// Records that come back onto the channel stop a move. It counts only records that it sent itself,
// and the next run goes on with the rest.
func TestMoveStopsWhenItDiesAgain(t *testing.T) {
	clock := newClock()
	from := &followed{shelf: newShelf(200), to: &post{}}
	m := redrive.Mover{From: from, Destination: redrive.Destination{To: from.to, Channel: "in"}, Rate: 20, Batch: 40, Clock: clock.Now,
		Wait: clock.Wait}
	got, err := m.Run(t.Context())
	stopped := (*redrive.StoppedError)(nil)
	if !errors.As(err, &stopped) || got.Redriven > 80 || got.DiedAgain != got.Redriven/2 || stopped.Again < redrive.StopLeast ||
		len(from.kept) != int(got.Redriven) {
		t.Errorf("%+v, %d remembered, %v", got, len(from.kept), err)
	}
	m.Stop = redrive.Stop{Share: -1}
	again, err := m.Run(t.Context())
	if err != nil || again.Redriven+got.Redriven != 200 || again.Operation == got.Operation {
		t.Errorf("%+v, %v", again, err)
	}
	from.check(t)
}

// busy is a store whose calls take long.
type busy struct {
	store.Store
	took time.Duration
	on   func()
}

func (s *busy) Resolve(ctx context.Context, list []store.Resolution) []error {
	s.on()
	select {
	case <-time.After(s.took):
		return s.Store.Resolve(ctx, list)
	case <-ctx.Done():
		errs := make([]error, len(list))
		for i := range errs {
			errs[i] = nixie.Errorf(nixie.CodeOutcomeUnknown, "resolve: %w", ctx.Err())
		}
		return errs
	}
}

// A group has no time limit until the redrive is stopped. Then it has a limited time to finish.
func TestB085_SlowGroupsAreNotCutShort(t *testing.T) {
	for took, want := range map[time.Duration]int64{20 * time.Second: 5, 40 * time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			clock := newClock()
			inner := memory.New(memory.Options{Clock: clock.Now})
			bury(t, inner, clock, 10, nil)
			st := &busy{Store: inner, took: 5 * time.Minute, on: func() {}}
			e, err := redrive.New(redrive.Config{Store: st, Batch: 5})
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Run(t.Context(), plan(t, e, 5).ID)
			if err != nil || r.Done != 5 {
				t.Errorf("slow: %+v, %v", r.Operation, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			st.took, st.on = took, stop
			r, err = e.Run(ctx, plan(t, e, 0).ID)
			if !errors.Is(err, context.Canceled) || r.Done != want {
				t.Errorf("stopped, %s more: %+v, %v", took, r.Operation, err)
			}
		})
	}
}

// A share that was reached exactly is not exceeded, also where its float is smaller.
func TestEqualIsNotMore(t *testing.T) {
	for percent := range int64(100) {
		share := float64(percent) / 100
		if redrive.Exceeds(percent, 100, share) || redrive.Exceeds(1000*percent, 100_000, share) {
			t.Errorf("%d of 100 are more than %d%%", percent, percent)
		}
		if !redrive.Exceeds(percent+1, 100, share) || !redrive.Exceeds(1000*percent+1, 100_000, share) {
			t.Errorf("more than %d of 100 are not more than %d%%", percent, percent)
		}
	}
}
