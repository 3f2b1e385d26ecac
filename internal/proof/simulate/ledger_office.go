package simulate

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// planned takes an operation down.
func (l *ledger) planned(op store.Operation, letters []nixie.ID) {
	items := map[nixie.ID]bool{}
	for _, id := range letters {
		items[id] = false
	}
	l.operations[op.ID] = items
	l.want(op.Selected == int64(len(letters)) && op.Pending == op.Selected, Once, "operation selects %d letters and %d are pending", op.Selected, len(letters))
}

// resolved judges one resolution.
func (l *ledger) resolved(r *store.Resolution, err error) {
	e := l.letters[r.Letter]
	if e == nil || !e.prunedAt.IsZero() {
		l.want(nixie.CodeOf(err) == nixie.CodeNotFound || nixie.CodeOf(err) == nixie.CodeConflict, Office, "%s of a letter that is not there: %v", r.Event, err)
		return
	}
	items, operated := l.operations[r.Operation], !r.Operation.IsZero()
	decided, item := items[r.Letter]
	allowed := l.allows(e, r) && (!operated || item && !decided)
	switch nixie.CodeOf(err) {
	case "":
		l.want(!operated || item && !decided, Once, "an operation does %s to %s again", r.Event, e)
		l.want(allowed, Office, "%s of %s is done, and its letter is %s", r.Event, e, e.status)
		l.apply(e, r)
	case nixie.CodeConflict:
		l.want(!allowed, Office, "%s of %s is refused, and its letter is %s: %v", r.Event, e, e.status, err)
	case nixie.CodeLimit:
		l.want(r.Event == nixie.OnNote, Answers, "%s of %s: %v", r.Event, e, err)
	default:
		l.want(false, Answers, "%s of %s: %v", r.Event, e, err)
	}
	if item {
		items[r.Letter] = true
	}
}

// allows reports whether an operator may do it to the letter as it is.
func (l *ledger) allows(e *entry, r *store.Resolution) bool {
	if r.Event == nixie.OnNote {
		return true
	}
	_, ok := nixie.NextStatus(e.status, r.Event)
	holder := l.keys[name{e.queue, e.key}]
	taken := e.key != "" && holder != nil && holder != e
	switch r.Event {
	case nixie.OnHold:
		return ok && e.status != nixie.StatusRedriving
	case nixie.OnPurge:
		return ok && r.Purges(e.status)
	case nixie.OnRestore:
		return ok && e.state == nixie.Dead && (!taken || l.active(e))
	case nixie.OnRedrive:
		capped := r.MaxRedrives > 0 && e.life-1 >= r.MaxRedrives
		return ok && !taken && !capped && (r.Force || e.redrivable && !e.review)
	}
	return ok
}

// active reports whether keys are held by what is on its way only.
func (l *ledger) active(e *entry) bool {
	scope := l.queues[e.queue].DedupeScope
	return scope == "" || scope == nixie.DedupeActive
}

// apply takes down what an operator did to a letter.
func (l *ledger) apply(e *entry, r *store.Resolution) {
	switch r.Event {
	case nixie.OnNote:
		return
	case nixie.OnPurge:
		l.remove(e, r.Operation)
		return
	}
	l.move(e, r.Event)
	switch r.Event {
	case nixie.OnRedrive:
		e.life++
		e.state, e.due, e.endedAt = nixie.Queued, l.now(), time.Time{}
		e.attempts, e.deliveries, e.crashes = 0, 0, 0
		if !e.blocks {
			l.join(e)
		}
		e.blocks = false
		l.take(e)
	case nixie.OnDiscard:
		e.blocks = false
		l.free(e, true)
	case nixie.OnRestore:
		if !l.active(e) {
			l.take(e)
		}
	}
}

// remove takes down that a message is not kept any more.
func (l *ledger) remove(e *entry, by nixie.ID) {
	e.prunedAt = l.now()
	l.drop(e)
	for id, items := range l.operations {
		if _, item := items[e.letter]; item && id != by {
			items[e.letter] = true
		}
	}
}

// amended judges a change of one message.
func (l *ledger) amended(id nixie.ID, c *store.Change, err error) {
	e := l.byID[id]
	if e == nil || !e.prunedAt.IsZero() {
		l.want(nixie.CodeOf(err) == nixie.CodeNotFound, Office, "%s of a message that is not there: %v", c.Verb, err)
		return
	}
	if err != nil {
		strict := l.queues[e.queue].Order == nixie.OrderStrict && e.ordered
		possible := e.state == nixie.Queued && (c.Verb != store.MayPass || strict) || e.going() && c.Verb == store.Cancel
		l.want(nixie.CodeOf(err) == nixie.CodeConflict && !possible, Office, "%s of %s, which is %s: %v", c.Verb, e, e.state, err)
		return
	}
	if c.Verb == store.Cancel {
		l.want(e.going(), Office, "%s is canceled and was %s", e, e.state)
		l.seen["cancel"]++
		e.perhaps = l.over(e)
		l.end(e, nixie.Canceled, nixie.OnGone)
		return
	}
	l.seen[string(c.Verb)]++
	l.lapse(e)
	l.want(e.state == nixie.Queued, Office, "%s of %s is done, which is %s", c.Verb, e, e.state)
	switch c.Verb {
	case store.Hold:
		l.bury(e, c.Settlement())
		e.blocks = e.blocks && !c.Free
	case store.RetryNow:
		e.due = earlier(e.due, l.now())
	case store.ResetAttempts:
		e.attempts, e.deliveries, e.crashes, e.vanished = 0, 0, 0, false
	case store.Reschedule:
		e.due = later(c.At, l.now())
	case store.MayPass:
		e.mayPass = true
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unblocked takes down that a stream goes on; marked says who may pass now.
func (l *ledger) unblocked(u *store.Unblocking, n int64, marked map[nixie.ID]bool, err error) {
	_, blocking := l.stream(name{u.Queue, u.Stream})
	if err != nil {
		code := nixie.CodeOf(err)
		l.want(code == nixie.CodeNotFound || code == nixie.CodeConflict, Answers, "unblock: %v", err)
		l.want(u.Mark || len(blocking) == 0, Office, "stream %s is not unblocked, and %v block it: %v", u.Stream, blocking, err)
		return
	}
	l.seen["unblock"]++
	if !u.Mark {
		l.want(n == int64(len(blocking)), Office, "%d letters of stream %s are unblocked, expected %v", n, u.Stream, blocking)
		for _, e := range blocking {
			e.blocks = false
		}
		return
	}
	for id, may := range marked {
		e := l.byID[id]
		l.want(may || !e.mayPass, Ordered, "%s may not pass any more", e)
		e.mayPass = may
	}
}
