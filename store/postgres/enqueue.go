package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
)

// Enqueue implements nixie.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	if err := checkMessages(messages); err != nil {
		return nil, err
	}
	var receipts []nixie.Receipt
	err := s.write(ctx, func(t *tx) (err error) {
		receipts, err = t.enqueue(messages)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

func checkMessages(messages []nixie.Message) error {
	if err := checkCall(len(messages)); err != nil {
		return err
	}
	size := 0
	for i := range messages {
		if err := messages[i].Check(); err != nil {
			return inBatch(i, len(messages), err)
		}
		size += len(messages[i].Body)
	}
	if size > nixie.MaxBatchBytes {
		return nixie.Errorf(nixie.CodeLimit, "bodies of the call have %d bytes, the limit is %d: split it", size, nixie.MaxBatchBytes)
	}
	return nil
}

// inBatch says which message of several an error is about.
func inBatch(i, n int, err error) error {
	var ours *nixie.Error
	if n == 1 || !errors.As(err, &ours) {
		return err
	}
	return nixie.Errorf(ours.Code, "message %d of %d: %w", i+1, n, err)
}

// enqueue takes messages in, all or none.
func (t *tx) enqueue(messages []nixie.Message) ([]nixie.Receipt, error) {
	messages = slices.Clone(messages) // one of them may be replaced by a later one
	var names []string
	var given []nixie.ID
	plain := true
	for i := range messages {
		m := &messages[i]
		names = append(names, m.Queue)
		if !m.ID.IsZero() {
			given = append(given, m.ID)
		}
		plain = plain && mayBePlain(m)
	}
	existing := map[nixie.ID]bool{}
	if len(given) > 0 {
		t.read(func(r row) error {
			var id nixie.ID
			err := r.Scan((*idColumn)(&id))
			existing[id] = true
			return err
		}, "select id from @.message where id = any($1)", uuids(given))
	}
	t.clock()
	if err := t.openQueues(names); err != nil {
		return nil, err
	}
	e := &enqueuing{tx: t, receipts: make([]nixie.Receipt, len(messages)), fresh: make([]*message, len(messages)), existing: existing, streams: map[streamKey]streamRow{}}
	streams := map[streamKey]bool{}
	for i := range messages {
		m := &messages[i]
		q := t.named[m.Queue]
		if err := q.settings.Admits(q.name); err != nil {
			return nil, err
		}
		if m.Stream != "" && q.settings.Ordered() {
			streams[streamKey{q.n, m.Stream}] = true
		}
		e.replaces = e.replaces || m.OnConflict == nixie.ReplaceExisting
		e.fresh[i] = t.newMessage(q, m)
	}
	if e.replaces {
		e.openHolders(messages, streams)
	} else if len(streams) > 0 {
		queues, names := streamArgs(streams)
		t.openStreams(func(own streamKey, s streamRow) { e.streams[own] = s }, "select * from unnest($1::int[], $2::text[])", queues, names)
	}
	if !plain || t.anyOrdered() { // places in a stream are drawn under its lock
		t.draw(len(messages))
	}
	if err := t.send(); err != nil {
		return nil, err
	}
	if len(t.places) > 0 { // those of a call stand in its order
		for _, m := range e.fresh {
			m.pos = t.nextPlace()
			m.place = m.pos
		}
	}
	if err := e.claimKeys(messages); err != nil {
		return nil, err
	}
	return e.receipts, e.accept(messages)
}

// newMessage is a message as it is taken in.
func (t *tx) newMessage(q *queueRow, given *nixie.Message) *message {
	m := &message{
		queue: q.n, q: q, id: given.ID, mtype: given.Type, key: given.Key, stream: given.Stream, dedupe: given.DedupeKey,
		priority: given.Priority, hash: nixie.HashBody(given.Body), generation: 1, due: t.now, in: inFresh,
	}
	if q.settings.Ordered() || !mayBePlain(given) {
		m.in = nowhere
	}
	if m.id.IsZero() {
		m.id = t.store.ids.New(moment(t.now))
	}
	if given.Delay > 0 {
		m.due += int64(given.Delay)
	}
	m.due = max(m.due, nanos(given.NotBefore))
	return m
}

// mayBePlain reports whether a message is handed out by range if its queue has no
// order.
func mayBePlain(m *nixie.Message) bool {
	return m.DedupeKey == "" && m.Priority == 0 && m.Delay <= 0 && m.NotBefore.IsZero()
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

// enqueuing is one call of enqueue.
type enqueuing struct {
	*tx
	receipts []nixie.Receipt
	fresh    []*message // nil for those that are duplicates
	existing map[nixie.ID]bool
	replaces bool // some of them take the place of who holds their key
	streams  map[streamKey]streamRow
	firsts   map[streamKey]*message // the first that goes by the lane of its stream
}

// claimKeys takes the dedupe keys of the messages, or answers with who holds them.
// The second of two that want the same key at once waits here for the first.
func (e *enqueuing) claimKeys(messages []nixie.Message) error {
	first := map[dedupeKey]int{}
	var wanted []int
	for i := range messages {
		if own := (dedupeKey{e.fresh[i].queue, messages[i].DedupeKey}); own.key != "" {
			if _, again := first[own]; !again {
				first[own] = i
				wanted = append(wanted, i)
			}
		}
	}
	held := map[int]*holder{}
	for len(wanted) > 0 {
		got, err := e.insertKeys(wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(i int) bool {
			own := dedupeKey{e.fresh[i].queue, e.fresh[i].dedupe}
			if has := e.keys[own]; has != nil && !got[e.fresh[i].pos] {
				held[i] = has
			}
			return got[e.fresh[i].pos] || e.keys[own] != nil
		})
	}
	return e.answerHeld(messages, first, held)
}

// openHolders opens the streams of the call together with those of the messages
// that may be replaced, and locks these.
func (e *enqueuing) openHolders(messages []nixie.Message, streams map[streamKey]bool) {
	queues, names := streamArgs(streams)
	owners, keys := eachOf(e.fresh, func(m *message) int64 { return m.queue }), eachOf(messages, func(m nixie.Message) string { return m.DedupeKey })
	const holders = "(select pos from @.dedupe where (queue, key) in (select * from unnest($1::int[], $2::text[])))"
	e.openStreamsOf("select s.queue, s.name from @.stream s where s.n in (select stream from @.pending where pos in "+holders+" and stream is not null) union select * from unnest($3::int[], $4::text[])", owners, keys, queues, names)
	e.lock(&e.locked.pending, "select pos from @.pending where pos in "+holders+" order by pos for update", owners, keys)
}

// insertKeys takes the keys that nobody holds, and reads who holds the others. One
// that was held and is free by now is in neither.
func (e *enqueuing) insertKeys(wanted []int) (got map[int64]bool, err error) {
	got = map[int64]bool{}
	var queues, positions []int64
	var keys []string
	for _, i := range wanted {
		queues, keys, positions = append(queues, e.fresh[i].queue), append(keys, e.fresh[i].dedupe), append(positions, e.fresh[i].pos)
	}
	e.read(func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		got[pos] = true
		return err
	}, `insert into @.dedupe (queue, key, pos) select queue, key, pos from unnest($1::int[], $2::text[], $3::bigint[]) u (queue, key, pos) order by 1, 2
		on conflict do nothing returning pos`, queues, keys, positions)
	e.readKeys("select * from unnest($1::int[], $2::text[])", queues, keys)
	return got, e.send()
}

// answerHeld answers those whose key is held: by a message that is there, or by an
// earlier one of the call.
func (e *enqueuing) answerHeld(messages []nixie.Message, first map[dedupeKey]int, held map[int]*holder) error {
	for i := range messages {
		m, own := &messages[i], dedupeKey{e.fresh[i].queue, messages[i].DedupeKey}
		if own.key == "" {
			continue
		}
		switch has := held[first[own]]; {
		case has != nil:
			if !settles(m.OnConflict, has) {
				return &nixie.DuplicateError{Key: own.key, Existing: has.id}
			}
			e.receipts[i] = nixie.Receipt{ID: has.id, Duplicate: true, Different: has.hash != e.fresh[i].hash}
			if m.OnConflict == nixie.ReplaceExisting {
				if !e.locked.pending[has.pos] {
					return errRaced
				}
				e.replace(has, m, e.fresh[i].hash)
			}
			e.fresh[i] = nil
		case first[own] != i:
			before := e.fresh[first[own]]
			if m.OnConflict == nixie.FailOnConflict {
				return &nixie.DuplicateError{Key: own.key, Existing: before.id}
			}
			e.receipts[i] = nixie.Receipt{ID: before.id, Duplicate: true, Different: before.hash != e.fresh[i].hash}
			if m.OnConflict == nixie.ReplaceExisting {
				replaceGiven(&messages[first[own]], m)
				before.hash = e.fresh[i].hash
			}
			e.fresh[i] = nil
		}
	}
	return nil
}

// replaceGiven gives a message of the call what a later one with its key says.
func replaceGiven(before, m *nixie.Message) {
	before.Body, before.Headers, before.Type, before.Key = m.Body, m.Headers, m.Type, cmp.Or(m.Key, before.Key)
}

// settles reports whether a taken key is an answer and not an error.
func settles(c nixie.Conflict, has *holder) bool {
	switch c {
	case nixie.ReturnExisting:
		return true
	case nixie.ReplaceExisting:
		return (has.state == stQueued || has.state == stBehind) && has.deliveries == 0
	}
	return false
}

// replace gives the holder of a key what a newer message says.
func (e *enqueuing) replace(has *holder, m *nixie.Message, hash nixie.Hash) {
	has.hash = hash
	e.run("update @.message set body = $2, hash = $3, headers = nullif($4, ''), type = $5, key = coalesce(nullif($6, ''), key) where pos = $1",
		has.pos, notNull(m.Body), hash[:], toJSON(len(m.Headers) == 0, m.Headers), m.Type, m.Key)
}

// accept writes the messages that are new.
func (e *enqueuing) accept(messages []nixie.Message) error {
	var list []*message
	var given []*nixie.Message
	seen := map[nixie.ID]bool{}
	for i, m := range e.fresh {
		if m == nil {
			continue
		}
		if e.existing[m.id] || seen[m.id] {
			return nixie.Errorf(nixie.CodeConflict, "message %s exists already: leave the ID out or use a new one", m.id)
		}
		seen[m.id] = true
		e.receipts[i].ID = m.id
		if m.stream != "" && m.q.settings.Ordered() {
			m.ordered, m.rank, m.state = true, m.pos, stBehind
			e.join(m, &messages[i])
		} else if m.due <= e.now {
			e.wake(m.q.name)
		}
		list, given = append(list, m), append(given, &messages[i])
	}
	if err := e.insertMessages(list, given, func(*nixie.Message) int64 { return e.now }); err != nil {
		return err
	}
	e.openLanes()
	for _, m := range list {
		if m.in == nowhere {
			e.touch(m)
		}
	}
	return nil
}

// insertMessages writes the rows that messages have for good.
func (t *tx) insertMessages(list []*message, given []*nixie.Message, enqueued func(*nixie.Message) int64) error {
	if to, ok := t.on.(copier); ok && len(list) >= copyLeast {
		if err := t.send(); err != nil {
			return err
		}
		rows := &messageRows{list: list, given: given, enqueued: enqueued, placed: list[0].pos > 0, at: -1}
		return to.copyFrom(t.ctx, t.store.named("copy @.message ("+rows.columns()+") from stdin (format binary)"), rows)
	}
	if len(list) == 0 {
		return nil
	}
	text := func(of func(*nixie.Message) string) []string { return eachOf(given, of) }
	t.run(`insert into @.message (pos, apart, lane, id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires)
		select case pos when 0 then nextval('@.place') else pos end, apart, nullif(lane, 0), id, queue, type, nullif(key, ''), nullif(stream, ''), nullif(dedupe, ''), priority, body, hash, nullif(headers, ''), nullif(origin, ''), enqueued, expires
		from unnest($1::bigint[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[], $9::bytea[], $10::bytea[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::boolean[], $16::bigint[])
		u (pos, id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires, apart, lane)`,
		columnOf(list, func(m *message) int64 { return m.pos }), columnOf(list, func(m *message) [16]byte { return m.id }), columnOf(list, func(m *message) int64 { return m.queue }),
		text(func(m *nixie.Message) string { return m.Type }), text(func(m *nixie.Message) string { return m.Key }),
		text(func(m *nixie.Message) string { return m.Stream }), text(func(m *nixie.Message) string { return m.DedupeKey }),
		columnOf(list, func(m *message) int64 { return int64(m.priority) }), eachOf(given, func(m *nixie.Message) []byte { return notNull(m.Body) }),
		columnOf(list, func(m *message) []byte { return m.hash[:] }),
		text(func(m *nixie.Message) string { return toJSON(len(m.Headers) == 0, m.Headers) }), text(func(m *nixie.Message) string { return toJSON(m.Origin == nil, m.Origin) }),
		eachOf(given, enqueued), eachOf(given, func(m *nixie.Message) int64 { return nanos(m.ExpiresAt) }), columnOf(list, (*message).isApart), columnOf(list, func(m *message) int64 { return m.lane }))
	return nil
}
