package sqlite

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// A place is a queue number and a sequence number in one integer.
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

// admit checks messages before any transaction.
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

// enqueue adds one message, or answers with the holder of its dedupe key.
func (t *tx) enqueue(m *nixie.Message, hash nixie.Hash) (nixie.Receipt, error) {
	q, err := t.openQueue(m.Queue)
	if err != nil {
		return nixie.Receipt{}, err
	}
	if err := q.settings.Admits(q.name); err != nil {
		return nixie.Receipt{}, err
	}
	if q.last >= maxSeq {
		return nixie.Receipt{}, nixie.Errorf(nixie.CodeLimit, "queue %s has taken %d messages, the limit: use another queue", q.name, q.last)
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
	due := max(lifecycle.Nanos(m.NotBefore), 0)
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
		q.cursor = q.last // nothing before it for ranges, so no claim has to look
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
	st, err := t.prepare(`insert into message (pos, id, own, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires, texts)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing`)
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
		return nixie.Errorf(nixie.CodeConflict, "message %s exists already: leave the ID empty, or use a dedupe key to enqueue safely twice", id)
	}
	return nil
}

// addMessage is insertMessage for an ID of ours, which is new, and without origin.
func (t *tx) addMessage(pos int64, id nixie.ID, own bool, m *nixie.Message, hash nixie.Hash) error {
	headers := textOf(jsonText(len(m.Headers) == 0, m.Headers))
	row := t.added.add(toMessage)
	row.num(pos).bytes(id[:]).flag(own).strOrNull(m.Type).strOrNull(m.Key).strOrNull(m.Stream).strOrNull(m.DedupeKey)
	row.num(int64(m.Priority)).bytes(m.Body).bytes(hash[:]).strOrNull(headers)
	row.num(t.now).num(lifecycle.Nanos(m.ExpiresAt)).num(messageSum(m, headers, ""))
	return t.added.end(row)
}

// takeKey takes the dedupe key for the message at pos. When another message
// holds it, it returns what the caller asked for in that case.
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
	err = t.each("select m.id, m.hash, m.pos, m.key, m.stream, m.origin from dedupe d join message m on m.pos = d.pos where d.queue = ? and d.key = ?", func(row rows) error {
		row.ColumnBytes(1, have[:])
		r = nixie.Receipt{ID: columnID(row, 0), Duplicate: true, Different: have != hash}
		holder, was.Key, was.Stream, origin = row.ColumnInt64(2), row.ColumnText(3), row.ColumnText(4), row.ColumnText(5)
		return nil
	}, q.n, m.DedupeKey)
	switch {
	case err != nil:
		return nil, err
	case r.ID.IsZero():
		return nil, nixie.Errorf(nixie.CodeInternal, "dedupe key %q of queue %s is held by nobody: run nixie verify", m.DedupeKey, q.name)
	case m.OnConflict == nixie.FailOnConflict:
		return nil, &nixie.DuplicateError{Key: m.DedupeKey, Existing: r.ID}
	case m.OnConflict == nixie.ReplaceExisting:
		if err := t.replace(q, &was, m, hash, origin, holder, r.ID); err != nil {
			return nil, err
		}
		return &r, t.audit(q.n, lifecycle.System, nixie.OnAmend, r.ID, store.Replaced(have))
	}
	return &r, nil
}

// replace gives a queued message that nobody has claimed in this life what a
// newer one says. Its ID, place and origin stay, and its key when the newer has none.
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
	return t.alter(holder, func(k *kind) { k.mtype = m.Type })
}

// freeKey releases the dedupe key of the message at pos if it holds it and the
// queue's scope says that a message in the given state no longer does.
func (t *tx) freeKey(q *queueRow, pos int64, key string, state int) error {
	if key == "" {
		return nil
	}
	switch q.settings.DedupeScope {
	case nixie.DedupeEver:
		return nil
	case nixie.DedupeUnresolved:
		if state == lifecycle.Dead {
			return nil
		}
	}
	return t.run("delete from dedupe where queue = ? and key = ? and pos = ?", q.n, key, pos)
}

// pendingRow is a row of the table pending.
type pendingRow struct {
	lifecycle.Message
	pos, queue int64
	priority   int
	damage     string // why steps cannot be read
	stream     int64  // the number of that, 0 is none
	reason     string // of the newest failure; "" is none
	size       int    // bytes of the body, where a claim asked for it
}

func (t *tx) insertPending(p *pendingRow) error {
	t.count(p, 1)
	if p.isSimple() {
		row := t.added.add(toPending)
		row.num(p.pos).num(p.queue).num(lifecycle.Queued).num(int64(p.priority)).num(p.Due).num(int64(p.Attempts)).num(int64(p.Deliveries))
		row.num(p.Number).num(p.Received).num(p.Claimed).strOrNull(p.reason)
		return t.added.end(row)
	}
	return t.run(`insert into pending (pos, queue, state, priority, due, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, abandoned, steps, stream, rank, may_pass, gap, claimed, reason, alone)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.pos, p.queue, p.State, p.priority, p.Due, p.Attempts, p.Deliveries, p.Crashes, p.Generation, p.Redrives,
		p.Number, p.Owner, p.Until, p.Received, text(p.Abandoned), jsonText(len(p.Steps) == 0, p.Steps),
		orNull(p.stream), p.Rank, p.MayPass, p.Gap, p.Claimed, text(p.reason), p.Alone)
}

// isSimple reports whether a row has nothing in most of its columns: that of a
// message without a stream that waits in its first life.
func (p *pendingRow) isSimple() bool {
	return p.State == lifecycle.Queued && p.Crashes == 0 && p.Generation == 1 && p.Redrives == 0 && p.Owner == 0 && p.Until == 0 && p.Abandoned == "" &&
		len(p.Steps) == 0 && p.stream == 0 && p.Rank == 0 && !p.MayPass && !p.Gap
}

// pendingWidth is the number of pendingColumns.
const pendingWidth = 23

const pendingColumns = "pos, queue, state, priority, due, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, abandoned, steps, stream, rank, may_pass, gap, claimed, reason, alone"

func scanPending(row rows) *pendingRow {
	p := &pendingRow{
		Message: lifecycle.Message{
			State: row.ColumnInt(2), Due: row.ColumnInt64(4), Attempts: row.ColumnInt(5), Deliveries: row.ColumnInt(6), Crashes: row.ColumnInt(7),
			Generation: row.ColumnInt(8), Redrives: row.ColumnInt(9), Number: row.ColumnInt64(10), Owner: row.ColumnInt64(11), Until: row.ColumnInt64(12),
			Received: row.ColumnInt64(13), Abandoned: row.ColumnText(14), Ordered: row.ColumnInt64(16) != 0, Rank: row.ColumnInt64(17),
			MayPass: row.ColumnBool(18), Gap: row.ColumnBool(19), Claimed: row.ColumnInt64(20), Alone: row.ColumnBool(22),
		},
		pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), priority: row.ColumnInt(3), stream: row.ColumnInt64(16), reason: row.ColumnText(21),
	}
	if err := fromJSON(row.ColumnText(15), &p.Steps); err != nil {
		p.Steps, p.damage = nil, "steps: "+err.Error()
	}
	return p
}

// pending returns the row of its own of the message at pos, or nil.
func (t *tx) pending(pos int64) (*pendingRow, error) {
	var p *pendingRow
	err := t.each("select "+pendingColumns+" from pending where pos = ?", func(row rows) error {
		p = scanPending(row)
		return nil
	}, pos)
	return p, err
}

// standing is where a message stands now.
type standing struct {
	state, deliveries int
	hasRow            bool
	own               bool
}

func (t *tx) stateOf(pos int64) (standing, error) {
	var st standing
	// The row of queue may not be flushed yet, so the cursor comes from it.
	q, err := t.queueAt(pos)
	if err != nil {
		return st, err
	}
	err = t.each(`select m.own, p.pos is not null, coalesce(p.state, g.state, 0), coalesce(p.deliveries, g.deliveries, 0), g.pos is not null
		from message m left join pending p on p.pos = m.pos left join log g on g.pos = m.pos where m.pos = +?`, func(row rows) error {
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
