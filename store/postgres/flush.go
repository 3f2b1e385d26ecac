package postgres

import (
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
)

// flush is what a transaction writes at its end.
type flush struct {
	changed  []*message
	touched  map[int64]bool
	failures []failureRow
	long     []int64 // messages whose history may be too long
	letters  []*letterRow
	released []int64 // messages whose dedupe key is free again
	taken    map[dedupeKey]int64
	opened   bool       // keys were locked that nobody may hold
	moved    []*message // to another queue
	stirred  map[streamKey]bool
	counts   map[logged]int64
	apart    []int64         // messages that no range hands out any more
	settled  map[int64]int64 // how many members of which batch
	skipped  []int64         // messages that lanes pass by
	left     []int64         // streams whose leases of lanes are over
}

// touch notes that a message changed.
func (t *tx) touch(m *message) {
	if t.work.touched == nil {
		t.work.touched = map[int64]bool{}
	}
	if !t.work.touched[m.pos] {
		t.work.touched[m.pos] = true
		t.work.changed = append(t.work.changed, m)
	}
}

// flush adds the statements that write what was decided: first what goes, then
// what comes, and what follows from both at last.
func (t *tx) flush() {
	w := &t.work
	t.flushMessages()
	t.flushRanges()
	t.flushLanes()
	t.flushMoves()
	t.flushFailures()
	t.flushLetters()
	t.flushKeys()
	t.flushCounts()
	t.arrange()
	*w = flush{}
}

func (t *tx) flushMessages() {
	var entering, staying, ending []*message
	var leaving, returning []int64
	for _, m := range t.work.changed {
		to := inLog
		if m.onItsWay() {
			to = inPending
		}
		switch {
		case m.in == inPending && to == inLog:
			leaving = append(leaving, m.pos)
		case m.in == inLog:
			returning = append(returning, m.pos)
			t.count(m, -1)
		case m.in == inFresh:
			t.work.apart = append(t.work.apart, m.pos)
		case m.in == inRange:
			if t.work.settled == nil {
				t.work.settled = map[int64]int64{}
			}
			t.work.settled[m.batch]++
		case m.in == inLane:
			t.work.skipped = append(t.work.skipped, m.pos)
			t.stir(m.queue, m.stream)
		case m.in == offLane:
			t.work.left = append(t.work.left, m.inStream)
			t.stir(m.queue, m.stream)
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
	t.insertPending(entering)
	t.updatePending(staying)
	t.insertLog(ending)
}

// pendingArgs are the columns of pending as arrays.
func pendingArgs(list []*message) []any {
	column := func(of func(*message) int64) []int64 { return columnOf(list, of) }
	text := func(of func(*message) string) []string { return columnOf(list, of) }
	flag := func(of func(*message) bool) []bool { return columnOf(list, of) }
	return []any{
		column(func(m *message) int64 { return m.pos }), column(func(m *message) int64 { return m.queue }), column(func(m *message) int64 { return int64(m.state) }),
		column(func(m *message) int64 { return int64(m.priority) }), column(func(m *message) int64 { return m.due }), column(func(m *message) int64 { return m.place }),
		column(func(m *message) int64 { return int64(m.attempts) }), column(func(m *message) int64 { return int64(m.deliveries) }), column(func(m *message) int64 { return int64(m.crashes) }),
		column(func(m *message) int64 { return int64(m.generation) }), column(func(m *message) int64 { return int64(m.redrives) }), column(func(m *message) int64 { return m.number }),
		column(func(m *message) int64 { return m.owner }), column(func(m *message) int64 { return m.until }), column(func(m *message) int64 { return m.received }), column(func(m *message) int64 { return m.claimed }),
		text(func(m *message) string { return m.abandoned }), text(func(m *message) string { return toJSON(len(m.steps) == 0, m.steps) }),
		text(func(m *message) string { return orNothing(m.ordered, m.stream) }), column(func(m *message) int64 { return m.rank }),
		flag(func(m *message) bool { return m.mayPass }), flag(func(m *message) bool { return m.gap }), text(func(m *message) string { return m.reason }),
	}
}

func columnOf[T any](list []*message, of func(*message) T) []T {
	values := make([]T, len(list))
	for i, m := range list {
		values[i] = of(m)
	}
	return values
}

func orNothing(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// pendingRows are pendingArgs as a table u, with the number of the stream; a rank
// of 0 is drawn in the order of the list.
const pendingRows = `(select * from unnest($1::bigint[], $2::int[], $3::smallint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
	$13::int[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::bigint[], $21::boolean[], $22::boolean[], $23::text[]) with ordinality
	as u (pos, queue, state, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, abandoned, steps, name, rank, may_pass, gap, reason, ord) order by ord) u
	left join @.stream s on u.name <> '' and s.queue + 0 = u.queue and s.name = u.name`

func (t *tx) insertPending(list []*message) {
	if len(list) == 0 {
		return
	}
	t.run(`insert into @.pending (pos, queue, state, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, abandoned, steps, stream, rank, may_pass, gap, reason)
		select u.pos, u.queue, u.state, u.priority, u.due, u.place, u.attempts, u.deliveries, u.crashes, u.generation, u.redrives, u.number, u.owner, u.until, u.received, u.claimed,
			nullif(u.abandoned, ''), nullif(u.steps, ''), s.n, u.rank, u.may_pass, u.gap, nullif(u.reason, '') from `+pendingRows, pendingArgs(list)...)
}

func (t *tx) updatePending(list []*message) {
	if len(list) == 0 {
		return
	}
	t.run(`update @.pending p set queue = u.queue, state = u.state, due = u.due, place = u.place, attempts = u.attempts, deliveries = u.deliveries, crashes = u.crashes, number = u.number, owner = u.owner, until = u.until,
		claimed = u.claimed, abandoned = nullif(u.abandoned, ''), steps = nullif(u.steps, ''), stream = s.n, rank = u.rank, may_pass = u.may_pass, gap = u.gap, reason = nullif(u.reason, '')
		from `+pendingRows+` where p.pos = u.pos`, pendingArgs(list)...)
}

func (t *tx) insertLog(list []*message) {
	if len(list) == 0 {
		return
	}
	column := func(of func(*message) int64) []int64 { return columnOf(list, of) }
	t.run(`insert into @.log (pos, queue, state, ended, received, attempts, deliveries, crashes, generation, redrives, number, steps, gap, reason, note)
		select pos, queue, state, ended, received, attempts, deliveries, crashes, generation, redrives, number, nullif(steps, ''), gap, nullif(reason, ''), nullif(note, '')
		from unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::boolean[], $14::text[], $15::text[])
		u (pos, queue, state, ended, received, attempts, deliveries, crashes, generation, redrives, number, steps, gap, reason, note)`,
		column(func(m *message) int64 { return m.pos }), column(func(m *message) int64 { return m.queue }), column(func(m *message) int64 { return int64(m.state) }),
		column(func(m *message) int64 { return m.ended }), column(func(m *message) int64 { return m.received }),
		column(func(m *message) int64 { return int64(m.attempts) }), column(func(m *message) int64 { return int64(m.deliveries) }), column(func(m *message) int64 { return int64(m.crashes) }),
		column(func(m *message) int64 { return int64(m.generation) }), column(func(m *message) int64 { return int64(m.redrives) }), column(func(m *message) int64 { return m.number }),
		columnOf(list, func(m *message) string { return toJSON(len(m.steps) == 0, m.steps) }), columnOf(list, func(m *message) bool { return m.gap }),
		columnOf(list, func(m *message) string { return m.reason }), columnOf(list, func(m *message) string { return plain(m.note) }))
}

func (t *tx) flushMoves() {
	if len(t.work.moved) == 0 {
		return
	}
	t.run("update @.message m set queue = u.queue, apart = true from unnest($1::bigint[], $2::int[]) u (pos, queue) where m.pos = u.pos",
		columnOf(t.work.moved, func(m *message) int64 { return m.pos }), columnOf(t.work.moved, func(m *message) int64 { return m.queue }))
}

// dedupeKey is a key that at most one message of a queue holds.
type dedupeKey struct {
	queue int64
	key   string
}

// holder is who has a dedupe key.
type holder struct {
	pos        int64
	id         nixie.ID
	hash       nixie.Hash
	state      int
	deliveries int
}

// release gives the dedupe key of a message back when the scope says so: ended is
// true when nothing about the message is left to be done, and false when it died
// and its letter is unresolved.
func (t *tx) release(m *message, ended bool) {
	scope := m.q.settings.DedupeScope
	if m.dedupe == "" || scope == nixie.DedupeEver || scope == nixie.DedupeUnresolved && !ended {
		return
	}
	own := dedupeKey{m.queue, m.dedupe}
	if has := t.keys[own]; has != nil && has.pos == m.pos {
		delete(t.keys, own)
	}
	if t.work.taken[own] == m.pos {
		delete(t.work.taken, own)
	}
	t.work.released = append(t.work.released, m.pos)
}

// free says whether the message can have its dedupe key; who holds it was read.
func (t *tx) free(queue int64, m *message) error {
	if has := t.keys[dedupeKey{queue, m.dedupe}]; m.dedupe != "" && has != nil && has.pos != m.pos {
		return &nixie.DuplicateError{Key: m.dedupe, Existing: has.id}
	}
	return nil
}

// take gives a message its dedupe key, which is free.
func (t *tx) take(m *message) {
	own := dedupeKey{m.queue, m.dedupe}
	if has := t.keys[own]; m.dedupe == "" || has != nil && has.pos == m.pos {
		return
	}
	t.keys[own] = &holder{pos: m.pos, id: m.id, hash: m.hash}
	if t.work.taken == nil {
		t.work.taken = map[dedupeKey]int64{}
	}
	t.work.taken[own] = m.pos
}

// readKeys reads who holds keys: a table of queues and keys.
func (t *tx) readKeys(wanted string, args ...any) {
	t.read(func(r row) error {
		var own dedupeKey
		has := &holder{}
		if err := r.Scan(&own.queue, &own.key, &has.pos, (*idColumn)(&has.id), (*hashColumn)(&has.hash), &has.state, &has.deliveries); err != nil {
			return err
		}
		t.keys[own] = has
		return nil
	}, `select d.queue, d.key, m.pos, m.id, m.hash, coalesce(p.state, -1), coalesce(p.deliveries, 0)
		from @.dedupe d join @.message m on m.pos = d.pos left join @.pending p on p.pos = d.pos where (d.queue, d.key) in (`+wanted+") order by d.queue, d.key", args...)
}

// openKeys locks keys, whether anybody holds them or not, and reads who does. A row
// whose holder is 0 is there for the lock and goes again.
func (t *tx) openKeys(wanted string, args ...any) {
	t.run("insert into @.dedupe as d (queue, key, pos) select distinct *, 0 from ("+wanted+") u order by 1, 2 on conflict (queue, key) do update set pos = d.pos", args...)
	t.readKeys(wanted, args...)
	t.work.opened = true
}

// freeKeys takes the keys of messages away.
func (t *tx) freeKeys(positions []int64) {
	t.run(`with own as materialized (select queue, key from @.dedupe where pos = any($1) order by queue, key for update)
		delete from @.dedupe d using own where d.queue = own.queue and d.key = own.key`, positions)
}

func (t *tx) flushKeys() {
	if len(t.work.released) > 0 {
		t.freeKeys(t.work.released)
	}
	if len(t.work.taken) > 0 {
		own := slices.Collect(maps.Keys(t.work.taken))
		t.run("insert into @.dedupe (queue, key, pos) select * from unnest($1::int[], $2::text[], $3::bigint[]) on conflict (queue, key) do update set pos = excluded.pos",
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
