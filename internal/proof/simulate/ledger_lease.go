package simulate

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// claimed judges a claim: each delivery alone, then what was left out.
func (l *ledger) claimed(queue string, want nixie.Want, owner string, ds []*nixie.Delivery) {
	l.sweep(queue)
	due := l.ripe(queue)
	l.want(len(ds) == 0 || !l.queues[queue].Paused, Fair, "paused queue %s hands out %s", queue, nameOf(ds))
	for _, d := range ds {
		l.lent(queue, want, owner, d)
		l.want(kindOf(d) == kindOf(ds[0]), Fair, "%s comes with others that are to be judged, suspects of other crashes, or neither", d.Key)
	}
	l.want(len(ds) <= want.Max || ds[0].Abandoned, Numbers, "claim brings %d, asked were %d", len(ds), want.Max)
	if !l.queues[queue].Paused {
		l.brought(due, want, ds)
	}
}

// kind is what messages have in common that may be handed out together.
type kind struct {
	judged  bool
	crashes int
}

func kindOf(d *nixie.Delivery) kind {
	if d.Abandoned {
		return kind{judged: true}
	}
	return kind{crashes: d.Crashes}
}

// sweep ends the leases that a claim has to end. Of a paused queue, and of others,
// the store may leave them for later.
func (l *ledger) sweep(queue string) {
	for _, e := range l.entries {
		if e.queue == queue && !l.queues[queue].Paused {
			l.lapse(e)
		}
	}
}

func nameOf(ds []*nixie.Delivery) []string {
	names := make([]string, 0, len(ds))
	for _, d := range ds {
		names = append(names, d.Key)
	}
	return names
}

// ripe is what a claim has to choose from by its kinds, and how many streams there are
// whose next one may be of several. In hand are suspects that somebody has.
type ripe struct {
	of     map[kind]int
	either int
	inHand bool
}

func (l *ledger) ripe(queue string) ripe {
	r := ripe{of: map[kind]int{}}
	seen := map[string]bool{}
	for _, e := range l.entries {
		r.inHand = r.inHand || e.queue == queue && e.state == nixie.Leased && e.crashes > 0 && !l.over(e)
		if e.queue != queue || !e.going() || seen[e.stream] && e.ordered {
			continue
		}
		choice := []*entry{e}
		if e.ordered {
			seen[e.stream] = true
			choice = l.may(name{queue, e.stream})
		} else if !l.over(e) && (e.state == nixie.Leased || e.due.After(l.now())) {
			continue
		}
		r.add(l, choice)
	}
	return r
}

func (r *ripe) add(l *ledger, choice []*entry) {
	kinds := map[kind]int{}
	for _, e := range choice {
		if e.vanished || l.over(e) {
			kinds[kind{judged: true}] = 1
		} else {
			kinds[kind{crashes: e.crashes}] = 1
		}
	}
	if len(kinds) > 1 {
		r.either++
		return
	}
	for k := range kinds {
		r.of[k]++
	}
}

// next is what a claim has to bring: all that is to be judged, else a group of the
// suspects of the fewest crashes, else others.
func (r *ripe) next() (k kind) {
	if r.of[kind{judged: true}] > 0 {
		return kind{judged: true}
	}
	for of := range r.of {
		if of.crashes > 0 && (k.crashes == 0 || of.crashes < k.crashes) {
			k = of
		}
	}
	return k
}

// brought expects a claim to bring all that it can. Where the next of a stream may be of
// several kinds, nobody knows here which it was.
func (l *ledger) brought(due ripe, want nixie.Want, ds []*nixie.Delivery) {
	if due.either > 0 {
		return
	}
	k, most := due.next(), want.Max
	switch {
	case k.judged:
		most = nixie.MaxBatch
	case k.crashes > 0 && !want.NoSuspects:
		most = min(most, lease.GroupSize(want.Parallel, k.crashes))
	case k.crashes > 0 && due.inHand:
		k = kind{}
	case k.crashes > 0:
		most = 0
	}
	n := min(most, due.of[k])
	l.want(len(ds) == n && (n == 0 || kindOf(ds[0]) == k), Fair, "claim of %+v brings %s, expected are %d of %+v among %+v", want, nameOf(ds), n, k, due)
}

// lent judges one delivery and takes it down.
func (l *ledger) lent(queue string, want nixie.Want, owner string, d *nixie.Delivery) {
	e := l.byID[d.ID]
	if e == nil {
		l.want(false, Conserved, "%s is handed out and was never taken in", d.Key)
		return
	}
	l.want(e.queue == queue && d.Queue == queue, Conserved, "%s of %s is handed out in %s", e, e.queue, queue)
	l.want(e.state != nixie.Leased || l.over(e), OneHolder, "%s is handed out to %s and %s holds it until %s", e, owner, e.owner, e.until)
	l.want(e.going(), OneHolder, "%s is handed out and is %s", e, e.state)
	l.inTurn(e)
	l.lapse(e)
	l.want(!l.now().Before(e.due), NotEarly, "%s is handed out %s too early", e, e.due.Sub(l.now()))
	e.deliveries++
	e.lease++
	if e.vanished {
		l.seen["abandoned"]++
	}
	if !e.vanished {
		e.attempts++
	}
	l.want(d.Abandoned == e.vanished, Numbers, "%s: abandoned is %v", e, d.Abandoned)
	l.want(d.Lease.Number == e.lease, Numbers, "%s has lease %d, expected %d", e, d.Lease.Number, e.lease)
	l.want(d.Deliveries == e.deliveries && d.Attempts == e.attempts && d.Crashes == e.crashes && d.Generation == e.life, Numbers,
		"%s has %d deliveries, %d attempts, %d crashes in life %d; expected %d, %d, %d in %d",
		e, d.Deliveries, d.Attempts, d.Crashes, d.Generation, e.deliveries, e.attempts, e.crashes, e.life)
	l.want(nixie.HashBody(d.Body) == e.hash, Whole, "%s has another body", e)
	l.want(slices.Equal(d.Steps, e.steps), Whole, "%s has the steps %q, expected %q", e, d.Steps, e.steps)
	l.want(d.Lease.Owner == owner, OneHolder, "%s is lent to %s and claimed by %s", e, d.Lease.Owner, owner)
	lease := want.Lease
	if lease == 0 {
		lease = l.queues[queue].LeaseOrDefault()
	}
	e.state, e.owner, e.until, e.mayPass = nixie.Leased, owner, l.now().Add(lease), false
}

// inTurn expects a message of a stream to be one of those that may go.
func (l *ledger) inTurn(e *entry) {
	if !e.ordered {
		return
	}
	own := name{e.queue, e.stream}
	if slices.Contains(l.may(own), e) {
		return
	}
	going, blocking := l.stream(own)
	for _, other := range going {
		l.want(other == e || other.state != nixie.Leased || l.over(other), Ordered, "%s is handed out and %s of its stream is leased", e, other)
	}
	l.want(l.queues[e.queue].Order != nixie.OrderStrict, Ordered, "%s is handed out before %v (blocked by %v)", e, going, blocking)
}

// answered judges the answer to a call under a lease, and reports whether it
// changes something.
func (l *ledger) answered(call string, d *nixie.Delivery, err error) (*entry, bool) {
	e := l.byID[d.ID]
	current := l.current(e, d)
	switch nixie.CodeOf(err) {
	case "":
		l.want(current, Fenced, "%s of %s under lease %d is taken, and that lease is over", call, d.Key, d.Lease.Number)
	case nixie.CodeLeaseLost:
		l.seen["late "+call]++
		l.want(!current, Fenced, "%s of %s under lease %d is refused, and that lease is current: %v", call, d.Key, d.Lease.Number, err)
	default:
		l.want(false, Answers, "%s of %s: %v", call, d.Key, err)
	}
	return e, err == nil && e != nil
}

func (l *ledger) extended(d *nixie.Delivery, lease time.Duration, err error) {
	if e, ok := l.answered("extend", d, err); ok {
		e.until = l.now().Add(lease)
		e.learn(d.Steps)
	}
}

func (e *entry) learn(steps []string) {
	for _, s := range steps {
		if !slices.Contains(e.steps, s) {
			e.steps = append(e.steps, s)
		}
	}
}

// settled judges one settlement. It reports whether it made or moved a letter.
func (l *ledger) settled(st *nixie.Settlement, err error) (buried bool) {
	e, ok := l.answered(string(st.Verb), st.Delivery, err)
	if !ok {
		return false
	}
	e.learn(st.Delivery.Steps)
	l.seen[string(st.Verb)]++
	switch st.Verb {
	case nixie.Complete:
		l.end(e, nixie.Succeeded, nixie.OnSuccess)
	case nixie.Discard:
		l.end(e, nixie.Discarded, nixie.OnGone)
	case nixie.Retry:
		l.again(e, st.Delay)
		if !e.vanished {
			e.crashes = 0
		}
		e.vanished = false
	case nixie.Release:
		if !e.vanished {
			e.attempts--
		}
		l.again(e, st.Delay)
		e.mayPass = st.MayPass && e.ordered && l.queues[e.queue].Order == nixie.OrderStrict
	default:
		l.bury(e, st)
		return true
	}
	return false
}

func (l *ledger) again(e *entry, delay time.Duration) {
	e.state, e.owner, e.due = nixie.Queued, "", l.now().Add(delay)
}

// end ends a life without a death.
func (l *ledger) end(e *entry, state nixie.State, on nixie.Event) {
	e.state, e.owner, e.endedAt, e.vanished, e.mayPass = state, "", l.now(), false, false
	l.free(e, true)
	if e.status == nixie.StatusRedriving {
		l.move(e, on)
	}
}

// bury makes a letter, or moves the one that is there.
func (l *ledger) bury(e *entry, st *nixie.Settlement) {
	e.state, e.owner, e.endedAt, e.vanished, e.mayPass = nixie.Dead, "", l.now(), false, false
	l.free(e, false)
	q := l.queues[e.queue]
	e.blocks = e.ordered && q.Blocks()
	e.redrivable, e.review = st.Burial.Redrivable, st.Burial.NeedsReview
	if st.Verb == nixie.Halt {
		q.Paused = true
		l.set(e.queue, q)
	}
	switch {
	case st.Verb == nixie.Hold || st.Burial.Status == nixie.StatusReview:
		l.move(e, nixie.OnHold)
	case e.status == "":
		l.move(e, nixie.OnBury)
	case st.Burial.Status == nixie.StatusQuarantined:
		l.move(e, nixie.OnExceed)
	default:
		l.move(e, nixie.OnDieAgain)
	}
}

// move moves a letter by the table of moves.
func (l *ledger) move(e *entry, on nixie.Event) {
	next, ok := nixie.NextStatus(e.status, on)
	l.want(ok, Office, "%s: the letter is %q and goes through %s", e, e.status, on)
	e.status, e.resolvedAt = next, time.Time{}
	l.seen["letter "+string(on)]++
	if !next.Unresolved() {
		e.resolvedAt = l.now()
	}
}
