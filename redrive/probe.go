package redrive

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// A redrive into queues of the store begins with few letters: only their success shows that the
// cause is fixed.
const (
	probeProof = 100                   // after this many successes nothing is held back any more
	probeEvery = 20 * time.Millisecond // between two questions for outcomes
	probeIdle  = time.Second           // no worker has claimed a letter for this long: no worker is there
	probeSlow  = 30 * time.Second      // a worker has, and no outcome came for this long
)

// probe holds a run back until letters that it moved have succeeded.
type probe struct {
	off    bool
	first  int64 // letters that may be under way before any has succeeded
	base   store.Outcome
	moved  int64         // when the run began
	known  int64         // outcomes so far
	waited time.Duration // in Wait since the last of them
}

// probe makes the probe of a run. A redrive to a broker has none, as a broker reports no successes.
func (e *Engine) probe(r *Result, b *brake) *probe {
	q := &probe{off: b.never() || e.sends(r), first: StopLeast, base: r.Outcome, moved: r.Done}
	if b.After > 0 {
		q.first = min(q.first, int64(b.After))
	}
	return q
}

func decided(o store.Outcome) int64 { return o.Succeeded + o.DiedAgain() + o.Gone }

// room waits until at least one of most letters may go, and returns how many may. It allows first
// letters without an outcome, and two more for each that has succeeded. It returns an error when
// the brake stops the run. If no outcomes come, it holds nothing back.
func (e *Engine) room(ctx context.Context, r *Result, b *brake, q *probe, most int) (int, error) {
	for !q.off {
		o, err := e.outcome(ctx, r.ID)
		if err != nil {
			return 0, err
		}
		if err := b.judge(o.DiedAgain(), r.Done); err != nil {
			return 0, err
		}
		succeeded := o.Succeeded - q.base.Succeeded
		if succeeded >= probeProof {
			break
		}
		known := decided(o) - decided(q.base)
		if room := q.first + 2*succeeded - (r.Done - q.moved - known); room > 0 {
			return int(min(int64(most), room)), nil
		}
		if known != q.known {
			q.known, q.waited = known, 0
		}
		if q.waited >= probeIdle {
			attended, err := e.attended(ctx, r.ID)
			if err != nil {
				return 0, err
			}
			if !attended || q.waited >= probeSlow {
				break
			}
		}
		q.waited += probeEvery
		if err := e.c.Wait(ctx, probeEvery); err != nil {
			return 0, err
		}
	}
	q.off = true
	return most, nil
}

// attended reports whether a worker has claimed a letter that an operation moved.
func (e *Engine) attended(ctx context.Context, id nixie.ID) (bool, error) {
	letters, _, err := e.c.Store.Letters(ctx, nixie.Filter{Operation: id, Statuses: []nixie.Status{nixie.StatusRedriving}},
		store.Page{Limit: 2 * StopLeast})
	return slices.ContainsFunc(letters, func(l nixie.Letter) bool { return l.Message.Deliveries > 0 }), err
}

// Await waits until each letter that a redrive moved has an outcome, at most for the time most, and
// returns the outcomes. For a redrive to a broker it does not wait. When ctx ends the error wraps
// the context's.
func (e *Engine) Await(ctx context.Context, id nixie.ID, most time.Duration) (store.Outcome, error) {
	var o store.Outcome
	for waited := time.Duration(0); ; {
		began := e.c.Clock()
		now, err := e.outcome(ctx, id)
		if err != nil {
			return o, err
		}
		if o = now; o.UnderWay == 0 || waited >= most {
			return o, nil
		}
		pause := min(max(probeEvery, askPart*e.c.Clock().Sub(began)), most-waited)
		waited += pause
		if err := e.c.Wait(ctx, pause); err != nil {
			return o, nixie.Errorf(nixie.CodeUnavailable, "stopped with %d letters of operation %s under way: %w", o.UnderWay, id, err)
		}
	}
}
