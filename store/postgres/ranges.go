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
// claim_unordered.sql says it, too.
const maxPieces = 64

// batchRow is a lease of plain messages while a transaction holds its lock.
type batchRow struct{ n, remains, queue, owner, claimed, until int64 }

// lockBatchesOf locks the batches that messages are in, and others by their numbers. What
// it waits for may change meanwhile, and then it may be passed by: who reads a message of a
// batch that is not locked has met a race.
func (t *tx) lockBatchesOf(ids [][16]byte, numbers ...int64) {
	if t.locked.batches == nil {
		t.locked.batches = map[int64]*batchRow{}
	}
	switch {
	case len(ids) > 0:
		t.read(t.keepBatch, "lock_batches_of.sql", ids, numbers)
	case len(numbers) > 0:
		t.read(t.keepBatch, "lock_batches.sql", numbers)
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
		return t.holdNow(which.ids, ids, told, true)
	}
	return t.holdNow(which.positions, places, told, false)
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
		t.read(func(r row) error { return r.Scan(&still[i]) }, "count_members.sql", b.args(t.store)...)
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
		t.run("shrink_batches.sql", batches, settled)
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
		t.lock(&t.locked.streams, "lock_stream_of_member.sql", own)
		t.readMessages("c.pos"+which.ids, own)
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
	t.run("sweep_members.sql", over, t.now)
	t.run("delete from @.batch where n = any($1) and places is null", over)
	return t.sweepLanes(over)
}
