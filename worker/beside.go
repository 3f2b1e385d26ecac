package worker

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// beside is what the source calls slow, settled beside the rest by a few calls at a
// time. It belongs to the settler.
type beside struct {
	w       *Worker
	source  lease.SlowSettler // nil: nothing is slow
	waiting outbox            // for a call
	out     int               // calls under way
	back    chan slowCall
	down    bool // the last call settled nothing: there is none before the next repeat

	ctx context.Context // of the calls: what they wait for takes as long as it does
	end func()          // ends it
}

// slowCall is a call under way, and what it answered.
type slowCall struct {
	outbox
	errs []error
}

// slowCalls are so many at a time: while one is waited for, the other is made.
const slowCalls = 2

func newBeside(w *Worker) beside {
	source, _ := w.c.Source.(lease.SlowSettler)
	ctx, end := context.WithCancel(w.base)
	return beside{w: w, source: source, back: make(chan slowCall, slowCalls), ctx: ctx, end: end}
}

// idle reports whether there is nothing to settle or to wait for.
func (b *beside) idle() bool { return b.out == 0 && len(b.waiting.runs) == 0 }

// pick takes what is slow out of a box.
func (b *beside) pick(box *outbox) {
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

// launch begins as many calls as there may be.
func (b *beside) launch() {
	for b.out < slowCalls && len(b.waiting.runs) > 0 && !b.down {
		n := min(len(b.waiting.runs), nixie.MaxBatch)
		c := slowCall{outbox: outbox{b.waiting.settlements[:n:n], b.waiting.runs[:n:n]}}
		b.waiting = outbox{b.waiting.settlements[n:], b.waiting.runs[n:]}
		b.out++
		go func() {
			c.errs = b.w.c.Source.Settle(b.ctx, c.settlements)
			b.back <- c
		}()
	}
}
