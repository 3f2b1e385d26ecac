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
	// DefaultStopShare is the default of [Stop].Share.
	DefaultStopShare = 0.1
	// StopLeast letters have to die again before a share counts: one of the first two proves
	// nothing.
	StopLeast = 10

	askEvery = 100 * time.Millisecond // between two questions for letters that died again
	askPart  = 10                     // asking takes at most about a tenth of the time
)

// Stop makes a redrive stop by itself when too many letters that it moved die again. Only letters
// that were moved and have died since the run began count: before an operator resumes a redrive,
// the cause is usually fixed. The zero value is the default.
type Stop struct {
	After int     // this many died again; 0: the share alone decides
	Share float64 // more than this part died again, and at least [StopLeast]; 0 is [DefaultStopShare], −1 none
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

// over names the bound that was passed, or returns "".
func (s Stop) over(again, moved int64) string {
	switch {
	case s.After > 0 && again >= int64(s.After):
		return "the limit is " + strconv.Itoa(s.After)
	case s.Share > 0 && again >= StopLeast && Exceeds(again, moved, s.Share):
		return "more than " + strconv.FormatFloat(100*s.Share, 'g', 4, 64) + "%"
	}
	return ""
}

// Exceeds reports whether part is more than a share of all. Equal is not more, also where no float
// is exactly the share: 0.29 of 100 is less than 29 in floats.
func Exceeds(part, all int64, share float64) bool {
	const rounding = 1e-6
	return float64(part)-share*float64(all) > rounding
}

// StoppedError is the error of a redrive that has stopped by itself; see [Stop]. The letters that
// it did not move stay as they are.
type StoppedError struct {
	Again, Moved int64 // letters moved since the run began, and those of them that died again
	Bound        string
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the redrive stopped by itself: of %d that it moved %d died again, %s", e.Moved, e.Again, e.Bound)
}

// Unwrap makes CodeOf answer [nixie.CodeLimit].
func (e *StoppedError) Unwrap() error { return &nixie.Error{Code: nixie.CodeLimit, Text: e.Error()} }

// brake stops a run by its [Stop].
type brake struct {
	Stop
	clock func() time.Time
	died  func(ctx context.Context) (int64, error) // counts moved letters that died again, also before this run

	base, moved int64     // letters that had died again and that were moved when the run began
	next        time.Time // of the next question
}

// begin notes the counts at the beginning of the run.
func (b *brake) begin(ctx context.Context, moved int64) (err error) {
	if !b.never() {
		b.moved, b.next = moved, b.clock().Add(askEvery)
		b.base, err = b.died(ctx)
	}
	return err
}

// check counts now and then the letters that died again, and stops the run if there are too many.
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
	b.next = done.Add(max(askEvery, askPart*done.Sub(now)))
	return b.judge(died, moved)
}

// judge stops the run if too many of its letters have died again.
func (b *brake) judge(died, moved int64) error {
	b.base = min(b.base, died) // a repeat of the redrive may have taken some up again
	again := died - b.base
	if bound := b.over(again, moved-b.moved); bound != "" {
		return &StoppedError{Again: again, Moved: moved - b.moved, Bound: bound}
	}
	return nil
}

// outcome returns the outcomes of the letters that a redrive moved, as far as they are known now.
func (e *Engine) outcome(ctx context.Context, id nixie.ID) (store.Outcome, error) {
	op, err := store.FindOperation(ctx, e.c.Store, store.OperationQuery{ID: id})
	return op.Outcome, err
}

// brake makes the brake of a run. Only a redrive has outcomes.
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
