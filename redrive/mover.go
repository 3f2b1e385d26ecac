package redrive

import (
	"cmp"
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
)

// Mover redrives the records of a dead letter channel without an office: from a [broker.Reader], in
// its order, to a [Destination]. A record is done when the broker has confirmed it and the reader
// remembers that. So a move that was stopped or killed goes on where it was. It then sends again
// the records that were sent and not remembered, at most one batch, under the same
// [broker.HeaderRedriveID]. A batch goes in parts: while the broker confirms one, the move reads
// and sends the next.
//
// Records that are not chosen, or refused, stay. The next reader of the same name gets them.
type Mover struct {
	From        broker.Reader // required
	Destination Destination

	// Office may have the same letters; default none. Letters that it has redriven count as done,
	// and those that it has discarded or quarantined stay. The move resolves there the letters that
	// it sends, for Actor (default "redrive") and Reason.
	Office        store.DeadLetters
	Actor, Reason string

	Choose func(*broker.Record) bool // picks records; default all
	Max    int                       // most records to send; 0 is all
	Rate   float64                   // records per second: at most Rate·t + 1 after t; 0 is no limit
	Batch  int                       // most records that are sent and not yet remembered; default [DefaultMove]
	DryRun bool                      // count only: send nothing and remember nothing

	// Operation goes with each record as [broker.HeaderOperation]; default a new ID for each run. A
	// record that dies again onto its channel still has it. So the move counts it, if the reader is
	// a [broker.Follower].
	Operation nixie.ID
	Stop      Stop

	Clock    func() time.Time // default time.Now
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(Moved) // called after each part; must not block
}

// Bounds of a move.
const (
	DefaultMove = 5_000  // records that are sent and not yet remembered
	MaxMove     = 10_000 // most records that may be so; a kill repeats no more

	partsInFlight = 4     // parts of a batch that are in flight at once
	maxChoice     = 1_000 // records of a part if only some are chosen, so that the reader can remember the gaps
)

// Moved counts the records of a move.
type Moved struct {
	Operation nixie.ID `json:"operation"`

	Read        int64 `json:"read"`
	Redriven    int64 `json:"redriven"`    // sent to their channels
	Quarantined int64 `json:"quarantined"` // sent to the quarantine: redriven too often
	Passed      int64 `json:"passed"`      // not chosen
	Skipped     int64 `json:"skipped"`     // refused
	Elsewhere   int64 `json:"elsewhere"`   // the office has redriven them, or they died again since
	Unanswered  int64 `json:"unanswered"`  // sent, and the broker may have them: the next run sends them again
	Left        int64 `json:"left"`        // not read yet, about
	DiedAgain   int64 `json:"died_again"`  // of those sent by this run, as far as that is known by now

	Refused []Refusal        `json:"refused"` // the first of them
	To      map[string]int64 `json:"to"`      // by channel
}

// Run moves until the end of the channel, or Max, or the end of ctx. It returns its counts, also
// with an error: a [StoppedError] if too many of its records died again. Another Run goes on there,
// and counts anew. Once ctx has ended it waits for answers of the broker for
// [Destination].Patience, and [DefaultPatience] more to remember them.
func (m Mover) Run(ctx context.Context) (Moved, error) {
	v := move{done: Moved{Refused: []Refusal{}, To: map[string]int64{}}}
	var err error
	if v.Mover, err = m.withDefaults(); err == nil {
		err = v.Destination.locate(ctx)
	}
	if err != nil {
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
	for len(v.inFlight) > 0 {
		if late := v.complete(); err == nil {
			err = late
		}
	}
	v.done.Left = v.From.Left()
	_, _ = v.brake.died(context.WithoutCancel(ctx)) // a count that fails now is left out
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
