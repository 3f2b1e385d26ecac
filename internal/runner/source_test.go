package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/store"
)

// The runner tells each error of the store once; one that lasts ends the run.
func TestTrouble(t *testing.T) {
	now := noon
	var warned []string
	var why error
	r := &Runner{c: Config{
		Clock: func() time.Time { return now }, Lease: 30 * time.Second,
		Warn: func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) },
	}}
	r.outage.r = r
	r.finish = func(err error) { why = err }
	ctx, full, gone := t.Context(), errors.New("full"), errors.New("gone")

	r.outage.note(ctx, settling, full)
	now = now.Add(9 * time.Second)
	r.outage.note(ctx, settling, full)
	r.outage.note(ctx, receiving, nil) // says nothing about settling
	r.outage.note(ctx, settling, gone)
	if want := []string{"full; trying again", "gone; trying again"}; !slices.Equal(warned, want) || why != nil {
		t.Fatalf("warned %q, ended by %v", warned, why)
	}
	r.outage.note(ctx, settling, nil)
	now = now.Add(time.Hour)
	r.outage.note(ctx, settling, gone)
	if why != nil {
		t.Fatalf("an outage that had passed ended the run: %v", why)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	now = now.Add(time.Hour)
	r.outage.note(stopped, settling, gone)
	if why != nil {
		t.Fatalf("being told to stop is an outage: %v", why)
	}
	r.outage.note(ctx, settling, gone)
	if !errors.Is(why, gone) {
		t.Fatalf("ended by %v", why)
	}
}

// slowToReturn is a store that may be away for a quarter of an hour.
type slowToReturn struct{ store.Store }

func (slowToReturn) Features() store.Features {
	return store.Features{Patience: func(err error) time.Duration {
		if nixie.CodeOf(err) == nixie.CodeUnavailable {
			return 15 * time.Minute
		}
		return 0
	}}
}

// The run waits for a server that is away, but not for one that refuses.
func TestTroubleOfAServer(t *testing.T) {
	now := noon
	var why error
	r := &Runner{store: slowToReturn{},
		c: Config{Clock: func() time.Time { return now }, Lease: 30 * time.Second, Warn: func(string, ...any) {}}}
	r.outage.r = r
	r.finish = func(err error) { why = err }
	away, denied := nixie.Errorf(nixie.CodeUnavailable, "away"), nixie.Errorf(nixie.CodeDenied, "denied")
	for _, c := range []struct {
		after time.Duration
		err   error
		want  error
	}{{0, away, nil}, {time.Minute, away, nil}, {13 * time.Minute, away, nil}, {time.Minute, away, away}, {0, denied, denied}} {
		now = now.Add(c.after)
		if r.outage.note(t.Context(), settling, c.err); !errors.Is(why, c.want) {
			t.Errorf("%s after noon, %v: ended by %v", now.Sub(noon), c.err, why)
		}
		why = nil
	}
}

// A message has one command at a time.
func TestInProgress(t *testing.T) {
	var p inProgress
	one, two := nixie.ID{1}, nixie.ID{2}
	if !p.begin(t.Context(), one) || !p.begin(t.Context(), two) {
		t.Fatal("cannot begin")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if p.begin(ended, one) {
		t.Fatal("began twice")
	}
	began := make(chan bool)
	go func() { began <- p.begin(t.Context(), one) }()
	select {
	case <-began:
		t.Fatal("began twice")
	default:
	}
	p.end(one)
	if !<-began {
		t.Fatal("does not begin when the first command has ended")
	}
	p.end(one)
	p.end(two)
	if len(p.done) > 0 {
		t.Errorf("%d are left", len(p.done))
	}
}

// A delivery that was in hand when the run halted is released, not begun.
func TestHaltedRunBeginsNothing(t *testing.T) {
	r := &Runner{}
	r.halt(errors.New("stop"))
	if o := nixie.OutcomeOf(r.handle(t.Context(), &nixie.Delivery{})); o.Verb != nixie.Release {
		t.Errorf("asks for %q, want a release", o.Verb)
	}
}

// A command that cannot be started costs no message, also one whose attempt found out while another
// one ended the run.
func TestNoMessagePaysForTheCommand(t *testing.T) {
	missing := &command.StartError{Program: "deliver", Err: errors.New("it is not there")}
	for _, isFirst := range []bool{true, false} {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		r := &Runner{c: Config{Clock: time.Now}, decider: &decider{}}
		r.defaults = &rules{attempt: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
			if !isFirst {
				end()
			}
			return missing
		})}
		if o := nixie.OutcomeOf(r.handle(ctx, &nixie.Delivery{})); o.Verb != nixie.Release || !errors.Is(r.whyHalted(), missing) {
			t.Errorf("it asks for %q, want a release; the run ends for %v", o.Verb, r.whyHalted())
		}
	}
}

// letters is a source whose letters are slow, and fail as long as a test says.
type letters struct {
	nixie.Source
	err error
}

func (*letters) Slow(st *nixie.Settlement) bool { return st.Verb == nixie.Bury }

func (l *letters) Settle(_ context.Context, settlements []nixie.Settlement) []error {
	errs := make([]error, len(settlements))
	for i, st := range settlements {
		if st.Verb == nixie.Bury {
			errs[i] = l.err
		}
	}
	return errs
}

// losing is a source that hands out two and loses one of them before it began.
type losing struct {
	letters
	given bool
}

func (l *losing) Receive(context.Context, nixie.Want) ([]*nixie.Delivery, error) {
	if l.given {
		return nil, nil
	}
	l.given = true
	return []*nixie.Delivery{{Message: nixie.Message{ID: nixie.ID{1}}}, {Message: nixie.Message{ID: nixie.ID{2}}}}, nil
}

func (*losing) Extend(_ context.Context, deliveries []*nixie.Delivery, _ time.Duration) []error {
	errs := make([]error, len(deliveries))
	for i, d := range deliveries {
		if d.ID == (nixie.ID{2}) {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "gone")
		}
	}
	return errs
}

// A consumer is idle also after the loss of a delivery that never began.
func TestIdleAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{c: Config{Clock: time.Now, Warn: func(string, ...any) {}}}
		r.outage.r = r
		c := newTracked(&losing{}, r)
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		go c.untilIdle(ctx, time.Second, stop)
		got, err := c.Receive(ctx, nixie.Want{})
		if err != nil {
			t.Fatal(err)
		}
		idle := func() bool {
			time.Sleep(time.Minute)
			synctest.Wait()
			return ctx.Err() != nil
		}
		if idle() {
			t.Fatal("idle with two in hand")
		}
		c.Extend(ctx, got, time.Minute)
		if idle() {
			t.Fatal("idle with one in hand")
		}
		c.Settle(ctx, []nixie.Settlement{{Delivery: got[0], Verb: nixie.Complete}})
		if !idle() {
			t.Error("not idle with nothing in hand")
		}
	})
}

// A settlement that is slow for the source is slow for the runner's source too, so that letters
// delay no other settlement. Consume reports the number of records whose outcome was not kept.
func TestConsumptionPassesOnWhatIsSlow(t *testing.T) {
	r := &Runner{c: Config{Clock: func() time.Time { return noon }, Warn: func(string, ...any) {}}}
	r.outage.r = r
	from := &letters{err: nixie.Errorf(nixie.CodeUnavailable, "no answer")}
	c := newTracked(from, r)
	bury := nixie.Settlement{Delivery: &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}}}, Verb: nixie.Bury}
	done := nixie.Settlement{Delivery: &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{2}}}, Verb: nixie.Complete}
	if !c.Slow(&bury) || c.Slow(&done) || (&tracked{Source: from.Source}).Slow(&bury) {
		t.Error("it does not say what its source says")
	}
	for range 2 {
		c.Settle(t.Context(), []nixie.Settlement{bury, done})
		if len(c.unsettled) != 1 || !c.unsettled[bury.Delivery.ID] {
			t.Errorf("not kept: %v", c.unsettled)
		}
	}
	from.err = nil
	if c.Settle(t.Context(), []nixie.Settlement{bury}); len(c.unsettled) != 0 {
		t.Errorf("not kept: %v", c.unsettled)
	}
}
