package redrive

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Mover redrives what lies on a channel that takes letters, without an office: from
// a [broker.Reader], in its order, by a [Route]. A record counts as done with when
// the broker has confirmed that it took it, and the reader remembers that; so a move
// that was stopped or killed goes on where it was. What was sent and not yet
// remembered is sent again then, under the same [broker.HeaderRedriveID]: one batch
// at most.
//
// What is not chosen, or refused, stays, and the next reader of the name gets it.
type Mover struct {
	From  broker.Reader // required
	Route Route

	Choose func(*broker.Record) bool // default all
	Max    int                       // at most so many are sent; 0 is all
	Rate   float64                   // records per second: at most Rate·t + 1 after t; 0 is no limit
	Batch  int                       // sent and remembered together; default [DefaultMove]
	DryRun bool                      // send nothing and remember nothing, and say what would be

	Clock    func() time.Time // default time.Now
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(Moved) // told after each batch; must not block
}

// DefaultMove is how many records of a channel are sent and remembered together.
const DefaultMove = 5_000

// Moved is how far a move came.
type Moved struct {
	Read        int64 `json:"read"`
	Redriven    int64 `json:"redriven"`    // sent on their way
	Quarantined int64 `json:"quarantined"` // sent aside: redriven too often
	Passed      int64 `json:"passed"`      // not chosen
	Skipped     int64 `json:"skipped"`     // refused
	Left        int64 `json:"left"`        // not read yet, about

	Refused []Refusal        `json:"refused"` // the first of them
	To      map[string]int64 `json:"to"`      // by channel
}

// Run moves until the end of the channel, or Max, or the end of ctx, and says how
// far it came, also with an error.
func (m Mover) Run(ctx context.Context) (Moved, error) {
	done := Moved{Refused: []Refusal{}, To: map[string]int64{}}
	m, err := m.withDefaults()
	if err != nil {
		return done, err
	}
	pacer := &Engine{Config{Clock: m.Clock, Wait: m.Wait}}
	p := newPace(m.Rate, m.Clock())
	for m.Max == 0 || done.sent() < int64(m.Max) {
		most := m.Batch
		if m.Choose != nil {
			most = min(most, maxChoice)
		}
		if m.Max > 0 {
			most = int(min(int64(most), int64(m.Max)-done.sent()))
		}
		n, err := pacer.allowed(ctx, p, most)
		if err != nil {
			return done, m.stopped(ctx, &done, err)
		}
		before := done.sent()
		more, err := m.batch(ctx, &done, n)
		p.took(int(done.sent() - before))
		done.Left = m.From.Left()
		if m.Progress != nil {
			m.Progress(done)
		}
		if err != nil {
			return done, m.stopped(ctx, &done, err)
		}
		if !more {
			break
		}
	}
	return done, nil
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
	if m.Route.Clock == nil {
		m.Route.Clock = m.Clock
	}
	var err error
	m.Route, err = m.Route.withDefaults()
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

// maxChoice is how many are looked at together where only some are sent: what may
// lie scattered among them can be remembered.
const maxChoice = 1_000

// MaxMove is the most that may be sent together: what a kill may repeat.
const MaxMove = 10_000

// batch moves up to most records, and reports whether there may be more. It is not
// torn by the end of ctx once something may have been sent.
func (m *Mover) batch(ctx context.Context, done *Moved, most int) (more bool, err error) {
	records, err := m.From.Next(ctx, most)
	if err != nil || len(records) == 0 {
		return false, err
	}
	var list []broker.Returning
	var chosen []*broker.Record
	for i := range records {
		done.Read++
		if m.Choose != nil && !m.Choose(&records[i]) {
			done.Passed++
			continue
		}
		list = append(list, broker.FromRecord(&records[i]))
		chosen = append(chosen, &records[i])
	}
	if len(list) == 0 {
		return true, nil
	}
	quarantined := make([]bool, len(list))
	sent, failed := m.count(done, list, chosen, quarantined, m.sendAll(ctx, list, quarantined))
	if !m.DryRun {
		remember, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := m.From.Done(remember, sent); err != nil {
			return false, err
		}
	}
	return failed == nil, failed
}

// sendAll is what a dry run does not do.
func (m *Mover) sendAll(ctx context.Context, list []broker.Returning, quarantined []bool) []error {
	if !m.DryRun {
		return m.Route.send(ctx, list, quarantined)
	}
	errs := make([]error, len(list))
	for i := range list {
		_, quarantined[i], errs[i] = m.Route.prepare(ctx, &list[i])
	}
	return errs
}

// count says what became of a batch: the records that are done with, and an error
// that is about more than one of them.
func (m *Mover) count(done *Moved, list []broker.Returning, chosen []*broker.Record, quarantined []bool, errs []error) (sent []*broker.Record, failed error) {
	for i, err := range errs {
		switch {
		case err == nil:
			sent = append(sent, chosen[i])
			if quarantined[i] {
				done.Quarantined++
				done.To[broker.Named(m.Route.Quarantine, list[i].Origin.Channel)]++
				continue
			}
			done.Redriven++
			done.To[list[i].Publication.Channel]++
		case refuses(err):
			done.Skipped++
			if len(done.Refused) < MaxRefusals {
				done.Refused = append(done.Refused, Refusal{list[i].Letter, err.Error()})
			}
		default:
			failed = err
		}
	}
	return sent, failed
}

// stopped words the end of ctx.
func (m *Mover) stopped(ctx context.Context, done *Moved, err error) error {
	done.Left = m.From.Left()
	if ctx.Err() != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "stopped with about %d records to go: %w", done.Left, ctx.Err())
	}
	return err
}
