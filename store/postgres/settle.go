package postgres

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Settle implements store.Queue.
func (s *Store) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := make([]error, len(settlements))
	if len(settlements) == 0 {
		return errs
	}
	if _, err := store.CheckSettlements(settlements); err != nil {
		return all(errs, err)
	}
	done, err := s.completePlain(ctx, settlements)
	if err != nil && !isRace(err) {
		return all(errs, err)
	}
	rest, indexes := unsettled(settlements, done)
	if len(rest) == 0 {
		return errs
	}
	left := make([]error, len(rest))
	if err := s.write(ctx, func(t *tx) error { return t.settleAll(rest, left) }); err != nil {
		all(left, err)
	}
	for i, at := range indexes {
		errs[at] = left[i]
	}
	return errs
}

// unsettled returns the settlements that are not done yet, and their indexes in the call.
func unsettled(settlements []nixie.Settlement, done []bool) (rest []nixie.Settlement, indexes []int) {
	for i := range settlements {
		if done == nil || !done[i] {
			rest, indexes = append(rest, settlements[i]), append(indexes, i)
		}
	}
	return rest, indexes
}

// settleAll applies the settlements of one call, in their order.
func (t *tx) settleAll(settlements []nixie.Settlement, errs []error) error {
	deliveries := make([]*nixie.Delivery, 0, len(settlements))
	var halting []nixie.ID
	told := false // whether failures are read: a letter has the first and the newest
	failing, dying := 0, 0
	for i := range settlements {
		st := &settlements[i]
		deliveries = append(deliveries, st.Delivery)
		if st.Verb == nixie.Halt && st.Delivery != nil {
			halting = append(halting, st.Delivery.ID)
		}
		if st.Failure != nil {
			failing++
		}
		if st.Burial != nil {
			dying++
		}
		told = told || st.Failure != nil || st.Second != nil || st.Burial != nil || st.Verb == nixie.Discard
	}
	t.openFollows(settlements)
	if len(halting) > 0 { // their queues will be paused
		t.run("lock_queues_of.sql", uuids(halting))
	}
	if err := t.holdLeased(deliveries, told); err != nil {
		return err
	}
	if err := t.openFollowKeys(settlements); err != nil {
		return err
	}
	t.work.changed, t.work.failures = slices.Grow(t.work.changed, len(settlements)), slices.Grow(t.work.failures, failing)
	t.work.letters, t.trail = slices.Grow(t.work.letters, dying), slices.Grow(t.trail, dying)
	for i := range settlements {
		errs[i] = t.settle(&settlements[i])
	}
	return t.enqueueFollows(settlements, errs)
}

// openFollows locks and reads the queues of the messages that follow settlements, if they exist.
func (t *tx) openFollows(settlements []nixie.Settlement) {
	var names []string
	for i := range settlements {
		names = append(names, queuesOf(settlements[i].Then)...)
	}
	if len(names) > 0 {
		t.lockQueues("name = any($1)", names)
		t.readQueues("name = any($1)", names)
	}
}

// openFollowKeys locks the dedupe keys of the messages that follow settlements together with those
// that the settlements free: two calls that take each other's keys would wait for each other.
func (t *tx) openFollowKeys(settlements []nixie.Settlement) error {
	var queues []int64
	var keys []string
	for i := range settlements {
		for j := range settlements[i].Then {
			m := &settlements[i].Then[j]
			if q := t.named[m.Queue]; q != nil && m.DedupeKey != "" {
				queues, keys = append(queues, q.n), append(keys, m.DedupeKey)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	for _, m := range t.rows {
		if m.dedupe != "" {
			queues, keys = append(queues, m.queue), append(keys, m.dedupe)
		}
	}
	t.openKeys("select * from unnest($1::int[], $2::text[])", queues, keys)
	return t.send()
}

// enqueueFollows enqueues what follows the settlements that were not refused: of each one the
// notice of its death, then its own messages.
func (t *tx) enqueueFollows(settlements []nixie.Settlement, errs []error) error {
	deaths := t.noticed
	notices, err := t.notices()
	if err != nil {
		return err
	}
	var follows []nixie.Message
	for i, refused := range errs {
		if len(deaths) > 0 && deaths[0].st == &settlements[i] {
			follows = append(follows, notices[0])
			deaths, notices = deaths[1:], notices[1:]
		}
		if refused == nil {
			follows = append(follows, settlements[i].Then...)
		}
	}
	if follows = append(follows, notices...); len(follows) == 0 {
		return nil
	}
	t.flush() // the settlements come first
	_, err = t.enqueue(follows)
	return err
}

// noticed is a message that died in a queue whose deaths another queue hears of.
type noticed struct {
	m      *message
	st     *nixie.Settlement
	newest *lifecycle.Failure
	to     string
}

// notices makes the notices of the deaths in this transaction, if queues want them.
func (t *tx) notices() ([]nixie.Message, error) {
	if len(t.noticed) == 0 {
		return nil, nil
	}
	positions := make([]int64, len(t.noticed))
	for i := range t.noticed {
		positions[i] = t.noticed[i].m.pos
	}
	given, err := t.said(positions)
	if err != nil {
		return nil, err
	}
	list := make([]nixie.Message, len(t.noticed))
	for i, n := range t.noticed {
		m := given[n.m.pos]
		m.Queue = n.m.q.name
		list[i] = n.m.Notice(m, n.st, n.newest, n.to, t.now)
	}
	t.noticed = nil
	return list, nil
}

// said reads what senders said of messages, for notices of their deaths.
func (t *tx) said(positions []int64) (map[int64]nixie.Message, error) {
	given := map[int64]nixie.Message{}
	t.read(func(r row) error {
		var pos, enqueued int64
		var headers string
		var m nixie.Message
		if err := r.Scan(&pos, &m.Body, &headers, &enqueued); err != nil {
			return err
		}
		_ = fromJSON(headers, &m.Headers) // a notice has no damage: the letter shows it
		m.EnqueuedAt = lifecycle.Moment(enqueued)
		given[pos] = m
		return nil
	}, "select pos, body, coalesce(headers, ''), enqueued from @.message where pos = any($1)", positions)
	return given, t.send()
}

// settle applies one settlement. It answers before it changes anything.
func (t *tx) settle(st *nixie.Settlement) error {
	if err := store.CheckSettlement(st); err != nil {
		return err
	}
	for i := range st.Then {
		if q := t.named[st.Then[i].Queue]; q != nil {
			if err := lifecycle.Admits(&q.settings, q.name); err != nil {
				return err
			}
		}
	}
	m, steps, err := t.held(st.Delivery)
	if err != nil {
		return err
	}
	return t.apply(m, st, steps)
}

// held finds the message of a delivery whose lease is current, and all its steps.
func (t *tx) held(d *nixie.Delivery) (*message, []string, error) {
	if d == nil {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := t.byID[d.ID]
	if m == nil || m.State != lifecycle.Leased || isStale(m, d) || m.Number != d.Lease.Number || m.Until <= t.now {
		return nil, nil, lifecycle.Lost(d)
	}
	steps, err := lifecycle.Learn(m.Steps, d)
	return m, steps, err
}

// apply does what a settlement asks for, if that is allowed. steps are those of the message, with
// those of the settlement.
func (t *tx) apply(m *message, st *nixie.Settlement, steps []string) error {
	e := lifecycle.Settled(st, m.letter != nil)
	if store.EventOf(st.Verb) == store.OnBury {
		if err := m.follows(e); err != nil {
			return err
		}
	}
	if err := m.Settle(st, &m.q.settings, steps, t.now); err != nil {
		return err
	}
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f != nil {
			t.fail(m, f, st.Verb)
		}
	}
	t.touch(m)
	if m.Ordered {
		t.markDirty(m.queue, m.stream)
	}
	switch m.State {
	case lifecycle.Queued:
		t.again(m)
		return nil
	case lifecycle.Dead:
		return t.bury(m, st, e)
	}
	return t.end(m, e)
}

// again lets a claim find a message that was retried or released.
func (t *tx) again(m *message) {
	if m.Ordered {
		m.State = lifecycle.Behind
	}
	if !m.Ordered || m.Due > t.now { // of a due one in a stream the recomputed head tells
		t.comes(m.q.name, m.Due)
	}
}

// end notes how a message ended that leaves nothing to do. A letter that was redriven follows it.
func (t *tx) end(m *message, e lifecycle.End) error {
	m.Ordered, m.note = false, e.Note
	t.release(m, true)
	if l := m.letter; l != nil && l.Status == nixie.StatusRedriving {
		if err := l.Follow(e, t.now); err != nil {
			return err
		}
		t.touchLetter(l)
		t.ends(l.pos, lifecycle.Ending{Operation: l.Operation, On: e.Event})
		t.record(l.queue, e.Actor, e.Event, l.ID, e.Reason)
	}
	return nil
}
