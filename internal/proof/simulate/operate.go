package simulate

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// reason is why operators do what they do.
const reason = "because"

// operate lets an operator do something.
func (w *world) operate(p *process, e Event) {
	var err error
	switch e.Do {
	case Plan:
		err = w.plan(p, e)
	case Run:
		err = w.run(p, e)
	case Amend:
		err = w.amend(p, e)
	case Pause:
		_, err = p.office.Pause(w.ctx, []string{e.Queue}, reason)
	case Resume:
		_, err = p.office.Resume(w.ctx, []string{e.Queue}, reason)
	case Unblock:
		_, err = p.office.Unblock(w.ctx, e.Queue, e.Stream, reason)
	case Pass:
		_, err = p.office.Pass(w.ctx, e.Queue, e.Stream, reason)
	case Prune:
		_, err = p.office.Prune(w.ctx, false)
	case Purge:
		_, err = p.office.Purge(w.ctx, &office.PurgeRequest{Queue: e.Queue, Reason: reason})
	}
	w.expected(err, nixie.CodeConflict, nixie.CodeNotFound)
}

// plan begins an operation on the letters of some messages, or on all of a queue
// that it can be done to.
func (w *world) plan(p *process, e Event) error {
	work := office.OperationRequest{Event: nixie.Event(e.How), Reason: reason, Max: e.N, Force: e.Force, MaxRedrives: w.setup.Cap}
	if len(e.On) > 0 {
		for _, named := range e.On {
			if x := w.book.named(named); x != nil && !x.letter.IsZero() {
				work.IDs = append(work.IDs, x.letter)
			}
		}
		if len(work.IDs) == 0 {
			return nil
		}
	} else {
		work.Filter = nixie.Filter{Queues: []string{e.Queue}}
	}
	v, err := p.office.Begin(w.ctx, &work)
	if err == nil {
		w.plans[e.Op] = &plan{v.Operation, work}
	}
	return err
}

// named finds a message.
func (l *ledger) named(named string) *entry {
	for _, e := range l.entries {
		if e.name == named && e.prunedAt.IsZero() {
			return e
		}
	}
	return nil
}

// groupSize is how many letters share a commit of an operation.
const groupSize = 2

// run lets an operation go on for some groups, or until it has waited long enough.
func (w *world) run(p *process, e Event) error {
	op := w.plans[e.Op]
	if op == nil {
		return nil
	}
	p.line.arrive() // what hangs is not of this run
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	work := op.work
	work.Rate, work.Batch = float64(e.Rate), groupSize
	left, groups := e.For, 0
	work.Progress = func(office.OperationResult) {
		if groups++; groups == e.N {
			stop()
		}
	}
	work.Wait = func(ctx context.Context, d time.Duration) error {
		if left -= d; left < 0 {
			stop()
			return ctx.Err()
		}
		w.clock.Advance(d.Truncate(time.Millisecond) + time.Millisecond)
		return nil
	}
	w.pace = pace{rate: e.Rate, since: w.clock.Now()}
	_, err := p.office.Run(ctx, op.id, &work)
	if ctx.Err() != nil {
		w.book.seen["stopped run"]++
	}
	w.pace = pace{}
	return err
}

// moved judges how fast letters are redriven.
func (w *world) moved(n int) {
	if w.pace.rate == 0 {
		return
	}
	w.pace.moved += n
	elapsed := w.clock.Now().Sub(w.pace.since).Seconds()
	most := float64(w.pace.rate)*elapsed + 1
	w.book.want(float64(w.pace.moved) <= most+1e-6, Pace, "%d letters went in %.3f s, the rate is %d", w.pace.moved, elapsed, w.pace.rate)
}

func (w *world) amend(p *process, e Event) error {
	a := office.AmendRequest{Verb: store.ChangeVerb(e.How), Reason: reason, At: w.clock.Now().Add(e.For), Free: e.N > 0}
	var ids []nixie.ID
	for _, named := range e.On {
		if x := w.book.named(named); x != nil {
			ids = append(ids, x.id)
		}
	}
	return p.office.Amend(w.ctx, ids, &a, func(office.AmendView) error { return nil })
}
