package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// A person hears once of each trouble; one that lasts ends the run.
func TestTrouble(t *testing.T) {
	now := noon
	var warned []string
	var why error
	r := &Runner{c: Config{
		Clock: func() time.Time { return now }, Lease: 30 * time.Second,
		Warn: func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) },
	}}
	r.trouble.r = r
	r.finish = func(err error) { why = err }
	ctx, full, gone := t.Context(), errors.New("full"), errors.New("gone")

	r.trouble.note(ctx, settling, full)
	now = now.Add(9 * time.Second)
	r.trouble.note(ctx, settling, full)
	r.trouble.note(ctx, receiving, nil) // says nothing about settling
	r.trouble.note(ctx, settling, gone)
	if want := []string{"full; trying again", "gone; trying again"}; !slices.Equal(warned, want) || why != nil {
		t.Fatalf("warned %q, ended by %v", warned, why)
	}
	r.trouble.note(ctx, settling, nil)
	now = now.Add(time.Hour)
	r.trouble.note(ctx, settling, gone)
	if why != nil {
		t.Fatalf("a trouble that had passed ended the run: %v", why)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	now = now.Add(time.Hour)
	r.trouble.note(stopped, settling, gone)
	if why != nil {
		t.Fatalf("being told to stop is a trouble: %v", why)
	}
	r.trouble.note(ctx, settling, gone)
	if !errors.Is(why, gone) {
		t.Fatalf("ended by %v", why)
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
		t.Fatal("does not begin when its turn has come")
	}
	p.end(one)
	p.end(two)
	if len(p.done) > 0 {
		t.Errorf("%d are left", len(p.done))
	}
}

// What was in hand when the run halted is given back, not begun.
func TestHaltedRunBeginsNothing(t *testing.T) {
	r := &Runner{}
	r.halt(errors.New("stop"))
	if o := nixie.OutcomeOf(r.handle(t.Context(), &nixie.Delivery{})); o.Verb != nixie.Release {
		t.Errorf("asks for %q, want a release", o.Verb)
	}
}
