package sqlite

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// A position contains a queue number and a sequence number in one integer.
const (
	seqBits   = 40
	maxSeq    = 1<<seqBits - 1
	maxQueues = 1 << 22
)

// Enqueue implements nixie.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	size, hashes, err := s.admit(messages)
	if err != nil {
		return nil, err
	}
	var receipts []nixie.Receipt
	err = s.write(ctx, size, func(t *tx) (err error) {
		receipts, err = t.enqueueAll(messages, hashes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// admit checks messages before the transaction.
func (s *Store) admit(messages []nixie.Message) (size int, hashes []nixie.Hash, err error) {
	if size, err = store.CheckMessages(messages); err != nil {
		return 0, nil, err
	}
	hashes = make([]nixie.Hash, len(messages))
	for i := range messages {
		hashes[i] = nixie.HashBody(messages[i].Body)
	}
	return size, hashes, s.space.check(s.now(), size)
}

func (t *tx) enqueueAll(messages []nixie.Message, hashes []nixie.Hash) ([]nixie.Receipt, error) {
	receipts := make([]nixie.Receipt, len(messages))
	for i := range messages {
		r, err := t.enqueue(&messages[i], hashes[i])
		if err != nil {
			return nil, err
		}
		receipts[i] = r
	}
	return receipts, nil
}

// enqueue adds one message, or returns the receipt of the message that holds its dedupe key.
func (t *tx) enqueue(m *nixie.Message, hash nixie.Hash) (nixie.Receipt, error) {
	q, err := t.openQueue(m.Queue)
	if err != nil {
		return nixie.Receipt{}, err
	}
	if err := lifecycle.Admits(&q.settings, q.name); err != nil {
		return nixie.Receipt{}, err
	}
	if q.last >= maxSeq {
		return nixie.Receipt{}, nixie.Errorf(nixie.CodeLimit,
			"queue %s has taken %d messages, the limit: use another queue", q.name, q.last)
	}
	pos := q.n<<seqBits | (q.last + 1)
	if m.DedupeKey != "" {
		taken, err := t.takeKey(q, m, hash, pos)
		if taken != nil || err != nil {
			return *orZero(taken), err
		}
	}
	id := m.ID
	if id.IsZero() {
		id = t.store.ids.New(lifecycle.Moment(t.now))
	}
	due := max(t.at.due(lifecycle.Nanos(m.NotBefore)), 0)
	if m.Delay > 0 {
		due = max(due, t.now+int64(m.Delay))
	}
	ordered := m.Stream != "" && q.settings.Ordered()
	own := due > t.now || m.Priority != 0 || ordered
	insert := t.insertMessage
	if m.ID.IsZero() && m.Origin == nil {
		insert = t.addMessage
	}
	if err := insert(pos, id, own, m, hash); err != nil {
		return nixie.Receipt{}, err
	}
	if own {
		row := &pendingRow{pos: pos, queue: q.n, priority: m.Priority, Message: lifecycle.Fresh(max(due, t.now))}
		if err := t.join(q, row, m.Stream, pos); err != nil {
			return nixie.Receipt{}, err
		}
		if err := t.insertPending(row); err != nil {
			return nixie.Receipt{}, err
		}
	}
	q.last++
	q.largest = max(q.largest, int64(len(m.Body)))
	switch {
	case !own:
		q.fresh++
	case q.fresh == 0:
		q.cursor = q.last // no new message lies before it, so claims start here
	}
	q.dirty = true
	if due <= t.now {
		t.wake(q.name)
	}
	return nixie.Receipt{ID: id}, nil
}

func orZero(r *nixie.Receipt) *nixie.Receipt {
	if r == nil {
		return &nixie.Receipt{}
	}
	return r
}

func (t *tx) insertMessage(pos int64, id nixie.ID, own bool, m *nixie.Message, hash nixie.Hash) error {
	st, err := t.prepare(sqlText("add_message"))
	if err != nil {
		return err
	}
	st.BindInt64(1, pos)
	st.BindBytes(2, id[:])
	st.BindBool(3, own)
	for i, s := range [...]string{m.Type, m.Key, m.Stream, m.DedupeKey} {
		if s != "" {
			st.BindText(4+i, s)
		}
	}
	st.BindInt64(8, int64(m.Priority))
	st.BindBytes(9, m.Body)
	st.BindBytes(10, hash[:])
	headers, origin := jsonText(len(m.Headers) == 0, m.Headers), store.OriginText(m.Origin)
	bind(st, 11, headers)
	bind(st, 12, text(origin))
	st.BindInt64(13, t.now)
	st.BindInt64(14, lifecycle.Nanos(m.ExpiresAt))
	st.BindInt64(15, messageSum(m, textOf(headers), origin))
	if _, err := st.Step(); err != nil {
		return err
	}
	if t.Changes() == 0 {
		return nixie.Errorf(nixie.CodeConflict,
			"message %s exists already: leave the ID empty, or use a dedupe key to enqueue safely twice", id)
	}
	return nil
}

// addMessage does what insertMessage does, for an ID that the store made, and without origin.
func (t *tx) addMessage(pos int64, id nixie.ID, own bool, m *nixie.Message, hash nixie.Hash) error {
	headers := textOf(jsonText(len(m.Headers) == 0, m.Headers))
	row := t.added.add(toMessage)
	row.num(pos).bytes(id[:]).flag(own).strOrNull(m.Type).strOrNull(m.Key).strOrNull(m.Stream).strOrNull(m.DedupeKey)
	row.num(int64(m.Priority)).bytes(m.Body).bytes(hash[:]).strOrNull(headers)
	row.num(t.now).num(lifecycle.Nanos(m.ExpiresAt)).num(messageSum(m, headers, ""))
	return t.added.end(row)
}

// takeKey takes the dedupe key for the message at pos. When another message holds the key, it does
// what OnConflict asks for.
func (t *tx) takeKey(q *queueRow, m *nixie.Message, hash nixie.Hash, pos int64) (*nixie.Receipt, error) {
	added, err := t.change("insert into dedupe (queue, key, pos) values (?, ?, ?) on conflict do nothing", q.n, m.DedupeKey, pos)
	if err != nil || added == 1 {
		return nil, err
	}
	var r nixie.Receipt
	var have nixie.Hash
	var holder int64
	var origin string
	was := nixie.Message{DedupeKey: m.DedupeKey}
	err = t.each(sqlText("key_holder"), func(row rows) error {
		row.ColumnBytes(1, have[:])
		r = nixie.Receipt{ID: columnID(row, 0), Duplicate: true, Different: have != hash}
		holder, was.Key, was.Stream, origin = row.ColumnInt64(2), row.ColumnText(3), row.ColumnText(4), row.ColumnText(5)
		return nil
	}, q.n, m.DedupeKey)
	switch {
	case err != nil:
		return nil, err
	case r.ID.IsZero():
		return nil, nixie.Errorf(nixie.CodeInternal, "dedupe key %q of queue %s has no holder: run nixie verify", m.DedupeKey, q.name)
	case m.OnConflict == nixie.FailOnConflict:
		return nil, &nixie.DuplicateError{Key: m.DedupeKey, Existing: r.ID}
	case m.OnConflict == nixie.ReplaceExisting:
		if err := t.replace(q, &was, m, hash, origin, holder, r.ID); err != nil {
			return nil, err
		}
		return &r, t.audit(q.n, lifecycle.System, store.OnAmend, r.ID, store.Replaced(have))
	}
	return &r, nil
}

// replace overwrites a queued message that has not been claimed in its generation. It keeps ID,
// position and origin, and the old key if the new message has none.
func (t *tx) replace(q *queueRow, was, m *nixie.Message, hash nixie.Hash, origin string, holder int64, id nixie.ID) error {
	st, err := t.stateOf(holder)
	if err != nil {
		return err
	}
	if st.state != lifecycle.Queued || st.deliveries > 0 {
		return &nixie.DuplicateError{Key: m.DedupeKey, Existing: id}
	}
	q.largest, q.dirty = max(q.largest, int64(len(m.Body))), true
	headers := jsonText(len(m.Headers) == 0, m.Headers)
	was.Type, was.Key = m.Type, cmp.Or(m.Key, was.Key)
	if err := t.run("update message set body = ?, hash = ?, headers = ?, type = ?, key = ?, texts = ? where pos = ?",
		m.Body, hash, headers, text(was.Type), text(was.Key), messageSum(was, textOf(headers), origin), holder); err != nil {
		return err
	}
	return t.changeFacet(holder, func(k *facet) { k.mtype = m.Type })
}

// freeKey releases the dedupe key of the message at pos, if that holds it.
func (t *tx) freeKey(queue int64, key string, pos int64) error {
	return t.run("delete from dedupe where queue = ? and key = ? and pos = ?", queue, key, pos)
}

// freeClaimedKeys releases the dedupe keys of messages that were claimed, if the queue's scope says
// so. Queues of other scopes pay nothing for it.
func (t *tx) freeClaimedKeys(got *claimed, queue string) error {
	if got.count() == 0 {
		return nil
	}
	q, err := t.queue(queue)
	if err != nil || !lifecycle.FreesClaimed(q.settings.DedupeScope) {
		return err
	}
	for _, r := range got.rows {
		if err := t.run(sqlText("free_key_of"), r.pos); err != nil {
			return err
		}
	}
	for _, pos := range got.members {
		if err := t.run(sqlText("free_key_of"), pos); err != nil {
			return err
		}
	}
	return nil
}

// standing holds the state of a message and where that is stored.
type standing struct {
	state, deliveries int
	hasRow            bool
	own               bool
}

func (t *tx) stateOf(pos int64) (standing, error) {
	var st standing
	// The cursor comes from memory: the row of queue may not be written yet.
	q, err := t.queueAt(pos)
	if err != nil {
		return st, err
	}
	err = t.each(sqlText("standing"), func(row rows) error {
		st = standing{own: row.ColumnBool(0), hasRow: row.ColumnBool(1), state: row.ColumnInt(2), deliveries: row.ColumnInt(3)}
		if st.state == lifecycle.Behind {
			st.state = lifecycle.Queued
		}
		if !st.hasRow && !row.ColumnBool(4) && !st.own && pos&maxSeq <= q.cursor {
			st.state, st.deliveries = lifecycle.Leased, 1
		}
		return nil
	}, pos)
	return st, err
}
