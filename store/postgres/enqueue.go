package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Enqueue implements nixie.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	if _, err := store.CheckMessages(messages); err != nil {
		return nil, err
	}
	if len(messages) < copyLeast && arePlain(messages) {
		if receipts, err := s.enqueueInGroup(ctx, messages); !errors.Is(err, errNotInGroup) {
			return receipts, err
		}
	}
	var receipts []nixie.Receipt
	err := s.write(ctx, func(t *tx) (err error) {
		t.after = append(t.after, func() { s.known.learn(t.named) })
		receipts, err = t.enqueue(messages)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// enqueue takes messages in, all or none.
func (t *tx) enqueue(messages []nixie.Message) ([]nixie.Receipt, error) {
	plain := arePlain(messages)
	if plain && t.copies(len(messages), copyLeast) {
		t.draw(len(messages))
	}
	existing := map[nixie.ID]bool{}
	if !plain {
		messages = slices.Clone(messages) // one of them may be replaced by a later one
		t.readExisting(messages, existing)
	}
	t.clock()
	if err := t.openQueues(queuesOf(messages)); err != nil {
		return nil, err
	}
	if plain && !t.anyOrdered() {
		return t.enqueuePlain(messages)
	}
	e := &enqueuing{tx: t, receipts: make([]nixie.Receipt, len(messages)), fresh: make([]*message, len(messages)), existing: existing,
		streams: map[streamKey]streamRow{}, concurrent: t.callers}
	if err := e.open(messages); err != nil {
		return nil, err
	}
	e.number()
	if err := e.claimKeys(messages); err != nil {
		return nil, err
	}
	return e.receipts, e.accept(messages)
}

// enqueuing is one call of enqueue.
type enqueuing struct {
	*tx
	receipts   []nixie.Receipt
	fresh      []*message // nil for those that are duplicates
	existing   map[nixie.ID]bool
	replaces   bool // some messages replace the one that holds their key
	streams    map[streamKey]streamRow
	firsts     map[streamKey]*message // the first on the ordered path of its stream
	concurrent bool                   // a transaction of a caller: other transactions go on in its streams
}

// open makes the messages, and locks and reads their streams.
func (e *enqueuing) open(messages []nixie.Message) error {
	t, streams := e.tx, map[streamKey]bool{}
	for i := range messages {
		m := &messages[i]
		q := t.named[m.Queue]
		if err := lifecycle.Admits(&q.settings, q.name); err != nil {
			return err
		}
		if m.Stream != "" && q.settings.Ordered() {
			streams[streamKey{q.n, m.Stream}] = true
			e.concurrent = e.concurrent && goesOrdered(q, m)
		}
		e.replaces = e.replaces || m.OnConflict == nixie.ReplaceExisting
		e.fresh[i] = t.newMessage(q, m)
	}
	e.concurrent = e.concurrent && !e.replaces
	read := func(own streamKey, s streamRow) { e.streams[own] = s }
	queues, names := streamArgs(streams)
	switch {
	case e.replaces:
		e.openHolders(messages, queues, names)
	case len(streams) == 0:
	case e.concurrent:
		t.addConcurrently(read, queues, names)
	default:
		t.openStreams(read, "for update", "select * from unnest($1::int[], $2::text[])", queues, names)
	}
	t.draw(len(messages)) // positions in a stream are drawn under its lock
	return t.send()
}

// number gives each message its position, in the order of the call, and an ID if it has none.
func (e *enqueuing) number() {
	for _, m := range e.fresh {
		m.pos = e.nextPosition()
		m.queuePos = m.pos
		if m.ID.IsZero() {
			m.ID, m.numbered = e.newID(m.pos)
		}
	}
}

// queuesOf returns the names of the queues of messages, some of them perhaps twice.
func queuesOf(messages []nixie.Message) (names []string) {
	for i := range messages {
		if n := len(names); n == 0 || names[n-1] != messages[i].Queue {
			names = append(names, messages[i].Queue)
		}
	}
	return names
}

// readExisting reads which of the given IDs are taken.
func (t *tx) readExisting(messages []nixie.Message, existing map[nixie.ID]bool) {
	var given []nixie.ID
	for i := range messages {
		if id := messages[i].ID; !id.IsZero() {
			given = append(given, id)
		}
	}
	if len(given) == 0 {
		return
	}
	t.read(func(r row) error {
		var id nixie.ID
		err := r.Scan((*idColumn)(&id))
		existing[id] = true
		return err
	}, "select id from @.message where pos"+which().ids, uuids(given))
}

// newMessage returns a message as it is taken in, without its position and the ID that it gets.
func (t *tx) newMessage(q *queueRow, given *nixie.Message) *message {
	m := &message{
		Message: lifecycle.Fresh(t.now),
		queue:   q.n, q: q, mtype: given.Type, key: given.Key, stream: given.Stream, dedupe: given.DedupeKey,
		priority: given.Priority, hash: nixie.HashBody(given.Body), in: unclaimed,
	}
	m.ID = given.ID
	if q.settings.Ordered() || !mayBePlain(given) {
		m.in = nowhere
	}
	if given.Delay > 0 {
		m.Due += int64(given.Delay)
	}
	m.Due = max(m.Due, lifecycle.Nanos(given.NotBefore))
	return m
}

// anyOrdered reports whether one of the queues that were read has an order.
func (t *tx) anyOrdered() bool {
	for _, q := range t.queues {
		if q.settings.Ordered() {
			return true
		}
	}
	return false
}

// accept writes the new messages.
func (e *enqueuing) accept(messages []nixie.Message) error {
	var list []*message
	var rows []messageRow
	seen := map[nixie.ID]bool{}
	for i, m := range e.fresh {
		if m == nil {
			continue
		}
		if e.existing[m.ID] || seen[m.ID] {
			return nixie.Errorf(nixie.CodeConflict, "message %s exists already: leave the ID out or use a new one", m.ID)
		}
		seen[m.ID] = true
		e.receipts[i].ID = m.ID
		if m.stream != "" && m.q.settings.Ordered() {
			m.Ordered, m.Rank, m.State = true, m.pos, lifecycle.Behind
			e.join(m, &messages[i])
		} else {
			e.comes(m.q.name, m.Due)
		}
		list = append(list, m)
		rows = append(rows, messageRow{id: m.ID, pos: m.pos, queue: m.queue, enqueued: e.now, byRange: m.goesByRange(),
			numbered: m.numbered, orderedStream: m.orderedStream, given: &messages[i]})
	}
	e.insertMessages(rows)
	e.giveTokens()
	for _, m := range list {
		if m.in == nowhere {
			e.touch(m)
		}
	}
	return nil
}
