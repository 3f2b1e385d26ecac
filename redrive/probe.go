package redrive

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// A redrive into queues of the store begins with few letters, as whether the cause is
// mended is known only when some have succeeded.
const (
	probeProof = 100                   // successes after which nothing is held back any more
	probeLook  = 20 * time.Millisecond // between looks at outcomes that have to be waited for
	probeIdle  = time.Second           // nobody has claimed what was moved: nobody works on it now
	probeSlow  = 30 * time.Second      // somebody has, and no outcome came
)

// probe holds a run back until what it moved has succeeded.
type probe struct {
	off    bool
	first  int64 // letters that may be under way before any has succeeded
	base   store.Outcome
	moved  int64         // when the run began
	known  int64         // outcomes so far
	waited time.Duration // since the last of them, as far as it was waited for
}

// probe is that of a run. What a broker takes has no success that is told.
func (e *Engine) probe(r *Result, b *brake) *probe {
	q := &probe{off: b.never() || e.sends(r), first: StopLeast, base: r.Outcome, moved: r.Done}
	if b.After > 0 {
		q.first = min(q.first, int64(b.After))
	}
	return q
}

func decided(o store.Outcome) int64 { return o.Succeeded + o.DiedAgain() }

// room waits until at least one of most letters may go, and says how many may: at most
// first more than have an outcome, and two for each that has succeeded. It ends when
// the brake stops the run. Where outcomes do not come, nothing is held back.
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
		q.waited += probeLook
		if err := e.c.Wait(ctx, probeLook); err != nil {
			return 0, err
		}
	}
	q.off = true
	return most, nil
}

// attended reports whether somebody has claimed of what an operation moved.
func (e *Engine) attended(ctx context.Context, id nixie.ID) (bool, error) {
	letters, _, err := e.c.Store.Letters(ctx, nixie.Filter{Operation: id, Statuses: []nixie.Status{nixie.StatusRedriving}}, store.Page{Limit: 2 * StopLeast})
	return slices.ContainsFunc(letters, func(l nixie.Letter) bool { return l.Message.Deliveries > 0 }), err
}

// Await waits until each letter that a redrive moved has an outcome, at most so long,
// and says what became of them. One to a broker has none to wait for. When ctx ends
// the error wraps the context's.
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
		pause := min(max(probeLook, lookPart*e.c.Clock().Sub(began)), most-waited)
		waited += pause
		if err := e.c.Wait(ctx, pause); err != nil {
			return o, nixie.Errorf(nixie.CodeUnavailable, "stopped with %d letters of operation %s under way: %w", o.UnderWay, id, err)
		}
	}
}
