package redrive

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Bounds of [Stop].
const (
	// DefaultStopShare is which part of what was moved has to have died again.
	DefaultStopShare = 0.1
	// StopLeast is how many have to have died again before a share is looked at: one
	// of the first two says nothing yet.
	StopLeast = 10

	lookEvery = 100 * time.Millisecond // how often it is asked at most what died again
	lookPart  = 10                     // asking takes no more than about such a part of the time
)

// Stop says when a redrive stops by itself, because what it moved dies again. Only
// what was moved and has died since its run began counts: whoever resumes a redrive
// has mended something. The zero value is the default.
type Stop struct {
	After int     // when so many died again; 0: the share alone decides
	Share float64 // when more than this part of what was moved died again, and [StopLeast] at least; 0 is [DefaultStopShare], −1 none
}

func (s Stop) withDefaults() (Stop, error) {
	if s.Share == 0 {
		s.Share = DefaultStopShare
	}
	switch {
	case s.After < 0:
		return s, nixie.Errorf(nixie.CodeInvalid, "stop after is %d: give how many may die again, or 0 for no such number", s.After)
	case s.Share != -1 && !(s.Share > 0 && s.Share <= 1):
		return s, nixie.Errorf(nixie.CodeInvalid, "stop share is %g: give a part from 0 to 1, or −1 for none", s.Share)
	}
	return s, nil
}

func (s Stop) never() bool { return s.After == 0 && s.Share == -1 }

// over says which bound was passed, if one was.
func (s Stop) over(again, moved int64) string {
	switch {
	case s.After > 0 && again >= int64(s.After):
		return "the limit is " + strconv.Itoa(s.After)
	case s.Share > 0 && again >= StopLeast && float64(again) > s.Share*float64(moved):
		return "more than " + strconv.FormatFloat(100*s.Share, 'g', 4, 64) + "%"
	}
	return ""
}

// StoppedError says that a redrive has stopped by itself, by its [Stop]. What it did
// not move stays as it is.
type StoppedError struct {
	Again, Moved int64 // how many of those moved since the run began have died again
	Bound        string
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the redrive stopped by itself: of %d that it moved %d died again, %s", e.Moved, e.Again, e.Bound)
}

// Unwrap makes CodeOf answer [nixie.CodeLimit].
func (e *StoppedError) Unwrap() error { return &nixie.Error{Code: nixie.CodeLimit, Text: e.Error()} }

// brake stops a run.
type brake struct {
	Stop
	clock func() time.Time
	died  func(ctx context.Context) (int64, error) // how many of what it moved died again, also before this run

	base, moved int64 // those that had died and those that were moved when the run began
	next        time.Time
}

// begin takes what is there already out of the count.
func (b *brake) begin(ctx context.Context, moved int64) (err error) {
	if !b.never() {
		b.moved, b.next = moved, b.clock().Add(lookEvery)
		b.base, err = b.died(ctx)
	}
	return err
}

// check asks now and then what died again, and stops the run when that is too much.
func (b *brake) check(ctx context.Context, moved int64) error {
	now := b.clock()
	if b.never() || now.Before(b.next) {
		return nil
	}
	died, err := b.died(ctx)
	if err != nil {
		return err
	}
	done := b.clock()
	b.next = done.Add(max(lookEvery, lookPart*done.Sub(now)))
	return b.judge(died, moved)
}

// judge stops the run when too much has died again of what it moved.
func (b *brake) judge(died, moved int64) error {
	b.base = min(b.base, died) // somebody has taken care of some
	again := died - b.base
	if bound := b.over(again, moved-b.moved); bound != "" {
		return &StoppedError{Again: again, Moved: moved - b.moved, Bound: bound}
	}
	return nil
}

// outcome is what became of letters that a redrive moved, as far as it is known now. A
// broker does not say what succeeds; of what it took those have died again whose letters
// came to this office.
func (e *Engine) outcome(ctx context.Context, id nixie.ID) (store.Outcome, error) {
	op, err := store.FindOperation(ctx, e.c.Store, store.OperationQuery{ID: id, Outcome: true})
	o := op.Outcome
	if e.c.Send != nil {
		o.Succeeded, o.UnderWay = 0, 0
	}
	return o, err
}

// brake is that of a run of an operation. Only a redrive has outcomes.
func (e *Engine) brake(op *store.Operation) *brake {
	b := &brake{Stop: e.c.Stop, clock: e.c.Clock}
	if op.Event != store.OnRedrive {
		b.Stop = Stop{Share: -1}
	}
	b.died = func(ctx context.Context) (int64, error) {
		o, err := e.outcome(ctx, op.ID)
		return o.DiedAgain(), err
	}
	return b
}
