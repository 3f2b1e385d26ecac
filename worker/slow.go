package worker

import (
	"context"

	"github.com/nixie-go/nixie/lease"
)

// slowSettlements settles those that the source reports as slow, in at most slowCalls concurrent
// calls. It belongs to the settler.
type slowSettlements struct {
	w       *Worker
	source  lease.SlowSettler // nil: nothing is slow
	waiting outbox            // for a call
	out     int               // calls under way
	back    chan slowCall
	down    bool // the last call settled nothing: there is none before the next repeat

	ctx context.Context // of the calls, which have no time limit of their own
	end func()          // ends it
}

// slowCall is a call under way, or its answers.
type slowCall struct {
	outbox
	errs []error
}

// slowCalls limits the calls at a time: while one waits, the settler can make the other.
const slowCalls = 2

func newSlowSettlements(w *Worker) slowSettlements {
	source, _ := w.c.Source.(lease.SlowSettler)
	ctx, end := context.WithCancel(w.base)
	return slowSettlements{w: w, source: source, back: make(chan slowCall, slowCalls), ctx: ctx, end: end}
}

// idle reports whether there is nothing to settle or to wait for.
func (b *slowSettlements) idle() bool { return b.out == 0 && len(b.waiting.runs) == 0 }

// takeFrom takes the slow settlements out of a box.
func (b *slowSettlements) takeFrom(box *outbox) {
	if b.source == nil {
		return
	}
	kept := 0
	for i, r := range box.runs {
		if b.source.Slow(&box.settlements[i]) {
			b.waiting.add(r, &box.settlements[i])
			continue
		}
		if kept < i {
			box.runs[kept], box.settlements[kept] = r, box.settlements[i]
		}
		kept++
	}
	clear(box.runs[kept:])
	clear(box.settlements[kept:])
	box.runs, box.settlements = box.runs[:kept], box.settlements[:kept]
}

// start begins calls, up to the limit.
func (b *slowSettlements) start() {
	for b.out < slowCalls && len(b.waiting.runs) > 0 && !b.down {
		n := fits(b.waiting.settlements)
		c := slowCall{outbox: outbox{b.waiting.settlements[:n:n], b.waiting.runs[:n:n]}}
		b.waiting = outbox{b.waiting.settlements[n:], b.waiting.runs[n:]}
		b.out++
		go func() {
			c.errs = b.w.c.Source.Settle(b.ctx, c.settlements)
			b.back <- c
		}()
	}
}
