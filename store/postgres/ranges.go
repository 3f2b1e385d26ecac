package postgres

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plain messages of queues without order are handed out by range, see the top of
// migrations/0001_core.up.sql. The order of ranges is (tx, pos), and a claim goes up
// to the oldest transaction of the cluster that has not ended, passes it, and notes it
// as late: nobody waits for a transaction, and none of its messages is missed. The
// idea is that of PGQ's ticks, which deliver what became visible between two
// snapshots.

// maxPieces bounds how many ranges one claim leases: each open transaction ends one.
const maxPieces = 64 // as in stretches

// stretches finds what a claim may hand out by range: for each late transaction that
// has ended the rest of its messages, then those from the cursor up to each
// transaction that is open and up to all that have begun. Each stretch is frozen, as
// all transactions in it have ended. $1 is the queue, $3 how many are wanted.
const stretches = `
	at as materialized (select c.moves, c.tx, c.pos, c.late, c.done, s.s, pg_snapshot_xmax(s.s) as top
		from fit, (select * from @.cursor where queue = $1 and moves >= $7 order by moves desc limit 1) c, (select pg_current_snapshot() as s offset 0) s),
	late as materialized (select u.x, u.done, pg_visible_in_snapshot(u.x, at.s) as ended from at cross join lateral unnest(at.late, at.done) u (x, done)),
	bound as materialized (select u.x, lag(u.x) over (order by u.x) as before, u.open from (
		select x, true as open from at cross join lateral pg_snapshot_xip(at.s) x where x >= at.tx and x <> all(at.late)
		union all select top, false from at where top >= at.tx) u),
	step as materialized (select row_number() over (order by bounded, x) as i, * from (
		select false as bounded, l.x, false as open, l.x as tx, l.done as pos, (l.x::text::bigint + 1)::text::xid8 as below from late l where l.ended
		union all
		select true, b.x, b.open, coalesce(b.before, at.tx), case when b.before is null then at.pos else 9223372036854775807 end, b.x from bound b cross join at) s),
	walk as (
		select 0::bigint as i, 0::bigint as taken, 0::bigint as got, 0::bigint as size, 0::bigint as newest, 0 as pieces
		union all
		select s.i, w.taken + c.got, c.got, w.size + coalesce(c.size, 0), greatest(w.newest, c.newest), w.pieces + (c.got > 0)::int
		from walk w join step s on s.i = w.i + 1 cross join lateral (select count(*) as got, sum(size)::bigint as size, max(enqueued) as newest from (
			select octet_length(m.body) as size, m.enqueued from @.message m where m.queue = $1 and not m.apart and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below order by m.tx, m.pos limit $3 - w.taken) x) c
		where w.taken < $3 and w.pieces < 64),
	total as materialized (select * from walk order by i desc limit 1),
	fresh as (select f.pos, f.size, row_number() over o as ord, max(enqueued) over o as turn, max(pos) over o as place from (
		select w.i, m.* from walk w join step s on s.i = w.i cross join lateral (
			select m.tx, m.pos, m.enqueued, octet_length(m.body) as size from @.message m
			where m.queue = $1 and not m.apart and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below order by m.tx, m.pos limit w.got) m) f
		window o as (order by i, tx, pos))`

// leasing leases the first of the stretches, as many messages as share says, and moves
// the cursor: past everything if it was exhausted, else to the last message taken. What
// it passes that has not ended is late from then on.
const leasing = `
	piece as materialized (select w.i, $9::bigint + row_number() over (order by w.i) as n, s.bounded, s.tx as after_tx, s.pos as after, w.members, z.tx, z.pos,
			greatest(w.newest, fit.now) as at -- nothing is claimed before it came, whichever clock
		from fit, (select *, least(got, (select n from share) - (taken - got)) as members from walk where got > 0) w join step s on s.i = w.i cross join lateral (
			select m.tx, m.pos from @.message m where m.queue = $1 and not m.apart and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below order by m.tx, m.pos offset w.members - 1 limit 1) z
		where w.members > 0),
	cut as materialized (select z.*, share.n = t.taken and t.taken < $3 and t.i = (select max(i) from step) as exhausted
		from (select * from piece order by i desc limit 1) z, share, total t),
	later as materialized (
		select l.x, l.done from late l where not l.ended
		union all select s.x, case when s.i = c.i then c.pos else s.pos end from step s, cut c where not s.bounded and not c.exhausted and s.i >= c.i
		union all select s.x, -1 from step s, cut c where s.open and (c.exhausted or s.i < c.i)),
	moved as (update @.cursor c set
			moves = c.moves + 1,
			tx = case when cut.exhausted then at.top when cut.bounded then cut.tx else c.tx end,
			pos = case when cut.exhausted then -1 when cut.bounded then cut.pos else c.pos end,
			late = array(select x from later order by x), done = array(select done from later order by x)
		from at, cut where c.queue = $1 and c.moves = (select moves from at) returning c.moves),
	leased as (insert into @.batch (n, queue, owner, after_tx, after, last_tx, last, members, remains, claimed, until)
		select n, $1, $5, after_tx, after, tx, pos, members, members, at, at + $6 from piece where exists (select from moved))`

// batchRow is a lease of plain messages while a transaction holds its lock.
type batchRow struct{ n, remains, queue, owner, claimed, until int64 }

// batchColumns are what keepBatch reads.
const batchColumns = "n, remains, queue, owner, claimed, until"

// lockBatchesOf locks the batches that messages are in, and others by their numbers. What
// it waits for may change meanwhile, and then it may be passed by: who reads a message of a
// batch that is not locked has met a race.
func (t *tx) lockBatchesOf(ids [][16]byte, numbers ...int64) {
	if t.locked.batches == nil {
		t.locked.batches = map[int64]*batchRow{}
	}
	const lock, inOrder = "select " + batchColumns + " from @.batch where n = any(", ") order by n for update"
	switch {
	case len(ids) > 0:
		t.read(t.keepBatch, lock+"array(select batch from @.current where pos"+ofIDs+" and lies in (3, 6) union select unnest($2::bigint[]))"+inOrder, ids, numbers)
	case len(numbers) > 0:
		t.read(t.keepBatch, lock+"$1::bigint[]"+inOrder, numbers)
	}
}

// keepBatch reads a batch that was locked.
func (t *tx) keepBatch(r row) error {
	b := &batchRow{}
	err := r.Scan(&b.n, &b.remains, &b.queue, &b.owner, &b.claimed, &b.until)
	t.locked.batches[b.n] = b
	return err
}

// holdLeased locks and reads the messages of deliveries. What is by now under another
// lease than that of its delivery is not found. All batches are locked at once, in the order
// of all.
func (t *tx) holdLeased(deliveries []*nixie.Delivery, told bool) error {
	var members, rest []*nixie.Delivery
	var batches []int64
	var unfiled [][16]byte
	for _, d := range deliveries {
		if d == nil {
			continue
		}
		at := d.Lease.Handle
		if at.Batch != 0 && at.Stream == 0 {
			members = append(members, d)
		} else {
			rest = append(rest, d)
		}
		switch {
		case at.Pos == 0:
			unfiled = append(unfiled, d.ID)
		case at.Batch != 0 && !slices.Contains(batches, at.Batch):
			batches = append(batches, at.Batch)
		}
	}
	t.lockBatchesOf(unfiled, batches...)
	still, err := t.holdMembers(members)
	if err != nil {
		return err
	}
	if !still {
		rest = append(rest, members...)
	}
	if len(rest) == 0 {
		return nil
	}
	var places []int64
	var ids [][16]byte
	for _, d := range rest {
		places, ids = append(places, d.Lease.Handle.Pos), append(ids, d.ID)
	}
	if len(unfiled) > 0 {
		return t.holdNow(ofIDs, ids, told, true)
	}
	return t.holdNow(ofPlaces, places, told, false)
}

// holdMembers is holdLeased for members of batches, which are locked, if all of them are still
// what they were when they were claimed. Then the deliveries say what is known of them, and all
// that is asked for is whether that is so.
func (t *tx) holdMembers(deliveries []*nixie.Delivery) (all bool, err error) {
	if len(deliveries) == 0 {
		return true, nil
	}
	var of []*settled
	for i, d := range deliveries {
		of = addPart(of, &d.Lease.Handle, i)
	}
	for _, b := range of {
		if !b.arrange() {
			return false, nil
		}
		b.partFar()
	}
	batches, still := eachOf(of, func(b *settled) int64 { return b.n }), make([]int, len(of))
	t.clock()
	for i, b := range of {
		t.read(func(r row) error { return r.Scan(&still[i]) }, countMembers, b.args(t.store)...)
	}
	t.readQueues("n = any(array(select queue from @.batch where n = any($1)))", batches)
	if err := t.send(); err != nil {
		return false, err
	}
	for i, b := range of {
		if t.locked.batches[b.n] == nil || still[i] < len(b.members) {
			return false, nil
		}
	}
	list := make([]message, len(deliveries))
	if len(t.rows) == 0 {
		t.rows, t.byID = make(map[int64]*message, len(list)), make(map[nixie.ID]*message, len(list))
	}
	for i, d := range deliveries {
		b, m := t.locked.batches[d.Lease.Handle.Batch], &list[i]
		*m = message{
			Message: lifecycle.Member(b.owner, b.until, b.claimed),
			pos:     d.Lease.Handle.Pos, queue: b.queue, mtype: d.Type, key: d.Key, stream: d.Stream, hash: d.Hash, in: inRange, batch: b.n, place: d.Lease.Handle.Pos,
		}
		m.ID = d.ID
		t.rows[m.pos], t.byID[m.ID] = m, m
	}
	return true, t.join()
}

// holdNow locks and reads messages that have rows of their own or are in batches that
// are locked; others are not found, unless their batches were looked up, see
// lockBatchesOf.
func (t *tx) holdNow(these string, arg any, told, lookedUp bool) error {
	t.holdRows(these, arg, told)
	if err := t.send(); err != nil {
		return err
	}
	for _, m := range t.rows {
		member := m.in == inRange || m.in == offLane
		if m.in != inFresh && m.in != inLane && (!member || t.locked.batches[m.batch] != nil) {
			continue
		}
		if member && lookedUp {
			return errRaced
		}
		delete(t.rows, m.pos)
		delete(t.byID, m.ID)
	}
	return t.checkLocks()
}

// flushRanges notes which plain messages have rows of their own from now on, or have
// ended.
func (t *tx) flushRanges() {
	if len(t.work.apart) > 0 {
		t.run("update @.message set apart = true where pos = any($1)", t.work.apart)
	}
	var batches, settled []int64
	for n, b := range t.locked.batches {
		if k := t.work.settled[n]; k > 0 {
			batches, settled = append(batches, n), append(settled, k)
			b.remains -= k
		}
	}
	if len(batches) > 0 {
		t.run(`with u as materialized (select * from unnest($1::bigint[], $2::bigint[]) u (n, k)),
			gone as (delete from @.batch b where b.n = any($1) and b.remains <= (select k from u where u.n = b.n))
			update @.batch b set remains = b.remains - (select k from u where u.n = b.n) where b.n = any($1) and b.remains > (select k from u where u.n = b.n)`, batches, settled)
	}
}

// extendBatches lets leases of batches end later of which all members are extended;
// members of others, and those with steps, get rows of their own under the same lease.
func (t *tx) extendBatches(members map[int64][]*message, until int64) {
	for n, list := range members {
		b := t.locked.batches[n]
		whole := int64(len(list)) == b.remains
		if whole {
			t.run("update @.batch set until = $2 where n = $1", n, until)
		}
		for _, m := range list {
			if !whole || len(m.Steps) > 0 {
				m.Until = until
				t.touch(m)
			}
		}
	}
}

// isStale reports whether a message is under another lease by now than when it was
// delivered as a member of a batch: its number would be the same if the server forgot
// the first claim. If it has a row since, only the owner in the number of the batch
// tells.
func isStale(m *message, d *nixie.Delivery) bool {
	in := d.Lease.Handle
	if m.in == inRange || m.in == offLane {
		return in.Pos != 0 && in.Batch != m.batch
	}
	return in.Batch != 0 && m.Number == 1 && in.Batch>>40 != batchesOf(m.Owner)>>40
}

// split gives a member of a batch a row of its own under the same lease, in a
// transaction of its own: the batch is not held up by whoever goes on with that one.
func (s *Store) split(ctx context.Context, d *nixie.Delivery) error {
	return s.transact(ctx, func(t *tx) error {
		own := [][16]byte{d.ID}
		t.lockBatchesOf(own)
		// No row of pending is waited for, and no stream: the caller's transaction may hold them.
		t.lock(&t.locked.streams, "select n from @.stream where n = any(array(select in_stream from @.current where pos"+ofIDs+" and lies = 6)) for no key update skip locked", own)
		t.readMessages("c.pos"+ofIDs, own)
		if err := t.send(); err != nil {
			return err
		}
		switch m := t.byID[d.ID]; {
		case m == nil || m.in != inRange && m.in != offLane || isStale(m, d):
		case t.locked.batches[m.batch] == nil:
			return errRaced // as in holdNow
		case m.in == offLane && !t.locked.streams[m.inStream]: // it stays in its batch
		default:
			t.touch(m)
		}
		return nil
	})
}

// sweepBatches ends leases of batches: their members are queued again to be judged.
func (t *tx) sweepBatches(dead []int64) error {
	var over []int64
	t.read(func(r row) error {
		var n int64
		err := r.Scan(&n)
		over = append(over, n)
		return err
	}, "select n from @.batch where until <= $1 or owner = any($2) order by n for update skip locked", t.now, dead)
	if err := t.send(); err != nil || len(over) == 0 {
		return err
	}
	t.run(`insert into @.pending (pos, queue, state, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, abandoned, rank, may_pass, gap)
		select p.pos, p.queue, 0, 0, $2, p.pos, 0, 1, 1, 1, 0, 1, 0, 0, p.claimed, p.claimed, `+abandoner+`, 0, false, false from @.member p where p.batch = any($1) and p.lane is null`, over, t.now)
	t.run("delete from @.batch where n = any($1) and places is null", over)
	return t.sweepLanes(over)
}
