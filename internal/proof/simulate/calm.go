package simulate

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// calm ends the faults and expects an end of everything: first of all that
// nothing dead blocks, then, when the office has given up the dead, of the rest.
func (w *world) calm() {
	for _, p := range w.processes {
		if !p.up {
			w.must(w.start(p))
		}
		p.stalled = false
		p.line.expect(Fault{})
		p.line.arrive()
		p.line.again()
		for len(p.unsure) > 0 {
			w.repeat(p)
		}
		for len(p.hands) > 0 && w.book.found == nil {
			w.workOff(p, p.hands[0])
		}
	}
	w.drain()
	w.ended(func(e *entry) bool {
		_, blocking := w.book.stream(name{e.queue, e.stream})
		return e.ordered && len(blocking) > 0 && blocking[0].place < e.place
	})
	for range w.book.entries { // what expires on its way blocks anew
		if !w.giveUp() {
			break
		}
		w.drain()
	}
	w.ended(func(*entry) bool { return false })
	w.book.census(w.ctx, w.eye)
	w.book.audit(w.ctx, w.eye)
}

// workOff ends one delivery in hand, whether its lease is good or not.
func (w *world) workOff(p *process, r *run) {
	if r.begun.IsZero() {
		w.release(p)
		return
	}
	w.finish(p, r, "ok")
}

// drain works until nothing is due any more, now or later.
func (w *world) drain() {
	for range 100 + 20*len(w.book.entries) {
		if w.book.found != nil {
			return
		}
		w.resume()
		w.clock.Advance(time.Millisecond)
		if w.shift() {
			continue
		}
		next := w.book.nextMoment()
		if next.IsZero() {
			return
		}
		w.clock.Advance(max(next.Sub(w.clock.Now()).Truncate(time.Millisecond), 0) + time.Millisecond)
	}
	w.book.want(false, Ends, "there is no end of work, with %d messages", len(w.book.entries))
}

func (w *world) resume() {
	for _, queue := range w.setup.names() {
		if w.book.queues[queue].Paused {
			_, err := w.processes[0].office.Resume(w.ctx, []string{queue}, reason)
			w.must(err)
		}
	}
}

// shift lets the first worker do what is due, and reports whether that was
// anything.
func (w *world) shift() (worked bool) {
	p := w.processes[1]
	for _, desk := range w.desksOf(p) {
		before := w.book.judged()
		ds, err := desk.Receive(w.ctx, nixie.Want{Max: 100})
		w.must(err)
		worked = worked || len(ds) > 0 || w.book.judged() != before
		for _, d := range ds {
			w.bounded(d)
			_, err := desk.Done(w.ctx, d, nil, w.clock.Now())
			w.must(err)
		}
	}
	return worked
}

// judged grows with every claim.
func (l *ledger) judged() (claims int64) {
	for _, e := range l.entries {
		claims += e.lease
	}
	return claims
}

// ended expects that nothing is on its way but what is excused.
func (w *world) ended(excused func(*entry) bool) {
	for _, e := range w.book.entries {
		w.book.want(!e.going() || !e.prunedAt.IsZero() || excused(e), Ends, "%s is %s and never ends", e, e.state)
	}
}

// giveUp discards all letters in which something is left to do, and reports
// whether there were any.
func (w *world) giveUp() bool {
	work := office.OperationRequest{Event: nixie.OnDiscard, Reason: "nobody is left"}
	v, err := w.processes[0].office.Begin(w.ctx, &work)
	w.must(err)
	_, err = w.processes[0].office.Run(w.ctx, v.Operation, &work)
	w.must(err)
	return v.Selected > 0
}
