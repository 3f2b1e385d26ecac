package postgres

import (
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// flush collects what a transaction writes at its end.
type flush struct {
	changed   []*message
	failures  []failureRow
	long      []int64 // messages whose history may be too long
	outgrown  []int64 // letters whose own failure is no longer the newest
	letters   []*letterRow
	ends      []itemEnd
	released  []int64 // messages whose dedupe key is free again
	taken     map[dedupeKey]int64
	opened    bool       // keys were locked that perhaps no message holds
	moved     []*message // to another queue
	dirty     map[streamKey]bool
	counts    map[logged]int64
	leftRange []int64         // messages that claims by range skip from now on
	settled   map[int64]int64 // how many members of which batch
	left      []*message      // that were in batches of ordered paths

	attachments []attachmentRow
}

// touch notes that a message changed.
func (t *tx) touch(m *message) {
	if !m.touched {
		m.touched = true
		t.work.changed = append(t.work.changed, m)
	}
}

// flush has what a transaction writes at its end.
func (t *tx) flush() {
	w := &t.work
	t.leaveOrderedPaths()
	t.flushMessages()
	t.flushRanges()
	t.flushOrdered()
	t.flushMoves()
	t.flushFailures()
	t.flushLetters()
	t.flushKeys()
	t.flushEnds()
	t.flushCounts()
	t.recomputeHeads()
	*w = flush{}
}

func (t *tx) flushMessages() {
	var entering, staying, ending []*message
	var leaving, returning []int64
	for _, m := range t.work.changed {
		m.touched = false
		to := inLog
		if m.OnItsWay() {
			to = inPending
		}
		switch {
		case m.in == inPending && to == inLog:
			leaving = append(leaving, m.pos)
		case m.in == inLog:
			returning = append(returning, m.pos)
			t.count(m, -1)
		case m.in == unclaimed:
			t.work.leftRange = append(t.work.leftRange, m.pos)
		case m.in == inOrderedBatch:
			t.work.left = append(t.work.left, m)
			t.markDirty(m.queue, m.stream)
		}
		if m.in == inRangeBatch || m.in == inOrderedBatch {
			if t.work.settled == nil {
				t.work.settled = map[int64]int64{}
			}
			t.work.settled[m.batch]++
		}
		switch {
		case to == inLog:
			ending = append(ending, m)
			t.count(m, 1)
		case m.in == inPending:
			staying = append(staying, m)
		default:
			entering = append(entering, m)
		}
		m.in = to
	}
	if len(leaving) > 0 {
		t.run("delete from @.pending where pos = any($1)", leaving)
	}
	if len(returning) > 0 {
		t.run("delete from @.log where pos = any($1)", returning)
	}
	t.store.bulk.pending.insert(t, entering)
	t.store.bulk.pending.rewrite(t, staying)
	t.store.bulk.log.insert(t, ending)
}

// pendingKind has what many messages on their way have in common, and logKind the same for
// those that have ended.
type (
	pendingKind struct {
		queue                                                      int64
		state, priority, attempts, deliveries, crashes, generation int
		redrives                                                   int
		number, owner, until, received, claimed, redriven          int64
		abandoned, steps, stream, reason, patience                 string
		mayPass, gap                                               bool
	}
	logKind struct {
		queue                                                      int64
		state, attempts, deliveries, crashes, generation, redrives int
		ended, received, number, redriven                          int64
		steps, reason, note                                        string
		gap                                                        bool
	}
)

func (m *message) pendingKind() pendingKind {
	return pendingKind{
		m.queue, m.State, m.priority, m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives, m.Number, m.Owner, m.Until, m.Received,
		m.Claimed, m.Redriven, m.Abandoned, m.stepsText(), m.ordering(), m.reason, m.patienceText(), m.MayPass,
		m.Gap,
	}
}

func (m *message) logKind() logKind {
	return logKind{m.queue, m.State, m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives, m.Ended, m.Received, m.Number,
		m.Redriven, m.stepsText(), m.reason, m.note, m.Gap}
}

func (m *message) stepsText() string { return toJSON(len(m.Steps) == 0, m.Steps) }

func (m *message) patienceText() string { return lease.PatienceText(m.Patience) }

// ordering returns the name of the ordered stream that the message is in.
func (m *message) ordering() string {
	if m.Ordered {
		return m.stream
	}
	return ""
}

// counts returns the columns that pending and log share.
func counts() []column[*message] {
	return []column[*message]{
		of("queue", "int", func(m *message) int64 { return m.queue }),
		of("state", "smallint", func(m *message) int64 { return int64(m.State) }),
		of("received", "bigint", func(m *message) int64 { return m.Received }),
		of("number", "bigint", func(m *message) int64 { return m.Number }),
		of("attempts", "bigint", func(m *message) int64 { return int64(m.Attempts) }),
		of("deliveries", "bigint", func(m *message) int64 { return int64(m.Deliveries) }),
		of("crashes", "bigint", func(m *message) int64 { return int64(m.Crashes) }),
		of("generation", "bigint", func(m *message) int64 { return int64(m.Generation) }),
		of("redrives", "bigint", func(m *message) int64 { return int64(m.Redrives) }),
		of("redriven", "bigint", func(m *message) int64 { return m.Redriven }),
		of("gap", "boolean", func(m *message) bool { return m.Gap }),
		text("steps", (*message).stepsText), text("reason", func(m *message) string { return m.reason }),
	}
}

func (s *Store) pendingWriter() bulkWriter[*message, pendingKind] {
	common := append(counts(),
		of("priority", "smallint", func(m *message) int64 { return int64(m.priority) }),
		of("owner", "int", func(m *message) int64 { return m.Owner }),
		of("until", "bigint", func(m *message) int64 { return m.Until }),
		of("claimed", "bigint", func(m *message) int64 { return m.Claimed }),
		text("abandoned", func(m *message) string { return m.Abandoned }), text("patience", (*message).patienceText),
		inStream((*message).ordering),
		of("may_pass", "boolean", func(m *message) bool { return m.MayPass }))
	return makeBulkWriter(s, "pending", (*message).pendingKind, common,
		of("pos", "bigint", func(m *message) int64 { return m.pos }), of("due", "bigint", func(m *message) int64 { return m.Due }),
		of("queue_pos", "bigint", func(m *message) int64 { return m.queuePos }),
		of("rank", "bigint", func(m *message) int64 { return m.Rank }))
}

func (s *Store) logWriter() bulkWriter[*message, logKind] {
	common := counts()
	for i := range common {
		if usual := usualInLog[common[i].name]; usual != nil {
			common[i] = common[i].orNull(usual)
		}
	}
	common = append(common, of("ended", "bigint", func(m *message) int64 { return m.Ended }),
		text("note", func(m *message) string { return plain(m.note) }))
	return makeBulkWriter(s, "log", (*message).logKind, common, of("pos", "bigint", func(m *message) int64 { return m.pos }),
		of("queue_pos", "bigint", (*message).movedTo).orNull(int64(0)))
}

// movedTo returns the position of a message that was moved from another queue, 0 for others.
func (m *message) movedTo() int64 {
	if m.queuePos == m.pos {
		return 0
	}
	return m.queuePos
}

// usualInLog has the values for which the table log has null: the counts of a clean first
// generation.
var usualInLog = map[string]any{
	"attempts": int64(1), "deliveries": int64(1), "crashes": int64(0), "generation": int64(1), "redrives": int64(0), "redriven": int64(0),
	"number": int64(1), "gap": false,
}

func (t *tx) flushMoves() {
	if len(t.work.moved) == 0 {
		return
	}
	t.run("note_moves.sql", eachOf(t.work.moved, func(m *message) int64 { return m.pos }),
		eachOf(t.work.moved, func(m *message) int64 { return m.queue }))
}

// dedupeKey is a key that at most one message of a queue holds.
type dedupeKey struct {
	queue int64
	key   string
}

// holder is the message that has a dedupe key.
type holder struct {
	pos        int64
	id         nixie.ID
	hash       nixie.Hash
	state      int
	deliveries int
}

// readKeys reads which messages hold keys. wanted is a query for queues and keys.
func (t *tx) readKeys(wanted string, args ...any) {
	t.read(func(r row) error {
		var own dedupeKey
		has := &holder{}
		if err := r.Scan(&own.queue, &own.key, &has.pos, (*idColumn)(&has.id), (*hashColumn)(&has.hash), &has.state,
			&has.deliveries); err != nil {
			return err
		}
		t.keys[own] = has
		return nil
	}, fill("read_keys.sql", "keys", wanted), args...)
}

// openKeys locks keys, also those that no message holds, and reads their holders. A row with holder
// 0 exists only for the lock and is removed again.
func (t *tx) openKeys(wanted string, args ...any) {
	t.run(fill("lock_keys.sql", "keys", wanted), args...)
	t.readKeys(wanted, args...)
	t.work.opened = true
}

// freeKeys takes the keys of messages away.
func (t *tx) freeKeys(positions []int64) {
	t.run("free_keys.sql", positions)
}

func (t *tx) flushKeys() {
	if len(t.work.released) > 0 {
		t.freeKeys(t.work.released)
	}
	if len(t.work.taken) > 0 {
		own := slices.Collect(maps.Keys(t.work.taken))
		t.run("take_keys.sql",
			eachOf(own, func(k dedupeKey) int64 { return k.queue }), eachOf(own, func(k dedupeKey) string { return k.key }),
			eachOf(own, func(k dedupeKey) int64 { return t.work.taken[k] }))
	}
	if t.work.opened {
		t.run("delete from @.dedupe where pos = 0")
	}
}

func eachOf[S, T any](list []S, of func(S) T) []T {
	values := make([]T, len(list))
	for i, v := range list {
		values[i] = of(v)
	}
	return values
}
