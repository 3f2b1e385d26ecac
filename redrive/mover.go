package redrive

import (
	"cmp"
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
)

// Mover redrives what lies on a channel that takes letters, without an office: from
// a [broker.Reader], in its order, by a [Destination]. A record counts as done with when
// the broker has confirmed that it took it, and the reader remembers that; so a move
// that was stopped or killed goes on where it was. What was sent and not yet
// remembered is sent again then, under the same [broker.HeaderRedriveID]: one batch
// at most. A batch goes in parts, so that the next one is read and sent while the
// broker confirms the last.
//
// What is not chosen, or refused, stays, and the next reader of the name gets it.
type Mover struct {
	From        broker.Reader // required
	Destination Destination

	// Office may have the same letters: what it has moved on counts as done with, what it
	// has discarded or quarantined stays, and what is sent is resolved there, for Actor
	// (default "redrive") and Reason. Default none.
	Office        store.DeadLetters
	Actor, Reason string

	Choose func(*broker.Record) bool // default all
	Max    int                       // at most so many are sent; 0 is all
	Rate   float64                   // records per second: at most Rate·t + 1 after t; 0 is no limit
	Batch  int                       // at most so many are sent and not remembered yet; default [DefaultMove]
	DryRun bool                      // send nothing and remember nothing, and say what would be

	// Operation is what the records say sent them, in [broker.HeaderOperation]; default a
	// new ID for each run. Those that die again onto the channel that they came from have
	// it there, and are counted if the reader is a [broker.Follower].
	Operation nixie.ID
	Stop      Stop

	Clock    func() time.Time // default time.Now
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(Moved) // told after each part; must not block
}

// Bounds of a move.
const (
	DefaultMove = 5_000  // records of a channel that are sent and not remembered yet
	MaxMove     = 10_000 // the most that may be so: what a kill may repeat

	partsAloft = 4     // of a batch: so many are on their way at once
	maxChoice  = 1_000 // looked at together where only some are sent: what may lie scattered among them can be remembered
)

// Moved is how far a move came.
type Moved struct {
	Operation nixie.ID `json:"operation"`

	Read        int64 `json:"read"`
	Redriven    int64 `json:"redriven"`    // sent on their way
	Quarantined int64 `json:"quarantined"` // sent aside: redriven too often
	Passed      int64 `json:"passed"`      // not chosen
	Skipped     int64 `json:"skipped"`     // refused
	Elsewhere   int64 `json:"elsewhere"`   // the office has redriven them, or they died again since
	Unanswered  int64 `json:"unanswered"`  // sent, and nobody knows whether the broker has them: the next run sends them again
	Left        int64 `json:"left"`        // not read yet, about
	DiedAgain   int64 `json:"died_again"`  // of those sent by this run, as far as that is known by now

	Refused []Refusal        `json:"refused"` // the first of them
	To      map[string]int64 `json:"to"`      // by channel
}

// Run moves until the end of the channel, or Max, or the end of ctx, and says how
// far it came, also with an error: a [StoppedError] if too much of it died again. Run
// again, it goes on, and counts anew. Once ctx has ended it waits for answers of the
// broker as long as Destination.Patience says, and [DefaultPatience] more to remember them.
func (m Mover) Run(ctx context.Context) (Moved, error) {
	v := move{done: Moved{Refused: []Refusal{}, To: map[string]int64{}}}
	var err error
	if v.Mover, err = m.withDefaults(); err != nil {
		return v.done, err
	}
	v.pace = newPace(v.Rate, v.Clock())
	v.pacer = Engine{Config{Clock: v.Clock, Wait: v.Wait}}
	v.done.Operation = v.Operation
	var end context.CancelFunc
	v.lasting, end = outlast(ctx, v.Destination.Patience+DefaultPatience)
	defer end()
	err = v.follow(ctx)
	for more := true; more && err == nil; {
		more, err = v.next(ctx)
	}
	for len(v.aloft) > 0 {
		if late := v.land(); err == nil {
			err = late
		}
	}
	v.done.Left = v.From.Left()
	_, _ = v.brake.died(context.WithoutCancel(ctx)) // what is not known by now is not said
	if err != nil && ctx.Err() != nil {
		err = nixie.Errorf(nixie.CodeUnavailable, "stopped with about %d records to go: %w", v.done.Left+v.done.Unanswered, ctx.Err())
	}
	return v.done, err
}

func (d *Moved) sent() int64 { return d.Redriven + d.Quarantined }

func (m Mover) withDefaults() (Mover, error) {
	if m.Batch == 0 {
		m.Batch = DefaultMove
	}
	m.Clock = orSystem(m.Clock)
	if m.Wait == nil {
		m.Wait = wait
	}
	m.Actor = cmp.Or(m.Actor, "redrive")
	if m.Destination.Clock == nil {
		m.Destination.Clock = m.Clock
	}
	var err error
	if m.Operation.IsZero() {
		m.Operation = new(store.IDs).New(m.Clock())
	}
	if m.Stop, err = m.Stop.withDefaults(); err != nil {
		return m, err
	}
	m.Destination, err = m.Destination.withDefaults()
	switch {
	case err != nil:
	case m.From == nil:
		err = nixie.Errorf(nixie.CodeInvalid, "move has nothing to read from: set From")
	case m.Max < 0:
		err = nixie.Errorf(nixie.CodeInvalid, "max is %d: give a positive number, or 0 for all", m.Max)
	case m.Batch < 1 || m.Batch > MaxMove:
		err = nixie.Errorf(nixie.CodeInvalid, "batch is %d: give one from 1 to %d", m.Batch, MaxMove)
	case !(m.Rate >= 0 && m.Rate <= MaxRate):
		err = nixie.Errorf(nixie.CodeInvalid, "rate is %g records per second: give one up to %d, or 0 for no limit", m.Rate, MaxRate)
	}
	return m, err
}
