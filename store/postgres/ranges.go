package postgres

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plain messages of queues without order are claimed by range: see claim_unordered.sql and the top
// of migrations/0001_core.up.sql.
//
//     state    where it lies          a change locks
//     -------  ---------------------  -----------------------
//     waiting  message alone          cursor of the queue
//     claimed  message, batch         batch
//     done     success_range or log   –

// maxPieces bounds how many ranges one claim leases: each open transaction ends one.
// claim_unordered.sql says it, too.
const maxPieces = 64

// batchRow is a batch whose lock the transaction holds.
type batchRow struct{ n, remains, queue, owner, claimed, until int64 }

// lockBatchesOf locks the batches that messages are in, and others by their numbers. A batch may
// change while the statement waits for its lock, and then it is left out. A call that reads a
// member of a batch that is not locked has met a race.
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

// holdLeased locks and reads the messages of deliveries. It leaves out messages that are under
// another lease by now. It locks all batches at once, in the order in which all calls lock them.
func (t *tx) holdLeased(deliveries []*nixie.Delivery, told bool) error {
	if t.callers { // it has split the batch, so that it need not hold its lock
		own := uuids(eachOf(deliveries, func(d *nixie.Delivery) nixie.ID { return d.ID }))
		t.lockBatchesOf(own)
		return t.holdNow(which().ids, own, told, false)
	}
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
	var positions []int64
	var ids [][16]byte
	for _, d := range rest {
		positions, ids = append(positions, d.Lease.Handle.Pos), append(ids, d.ID)
	}
	if len(unfiled) > 0 {
		return t.holdNow(which().ids, ids, told, true)
	}
	return t.holdNow(which().positions, positions, told, false)
}

// holdMembers is holdLeased for members of batches, which are locked. If all of them are still
// leased as they were claimed, the deliveries tell all that is known of them, and one count per
// batch is enough.
func (t *tx) holdMembers(deliveries []*nixie.Delivery) (all bool, err error) {
	if len(deliveries) == 0 {
		return true, nil
	}
	var of []*settled
	for i, d := range deliveries {
		of = addPart(of, &d.Lease.Handle, i)
	}
	for _, b := range of {
		if !b.findRuns() {
			return false, nil
		}
		b.splitFarRuns()
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
			pos:     d.Lease.Handle.Pos, queue: b.queue, mtype: d.Type, key: d.Key, stream: d.Stream, hash: d.Hash, in: inRangeBatch,
			batch: b.n, queuePos: d.Lease.Handle.Pos,
		}
		m.ID = d.ID
		t.rows[m.pos], t.byID[m.ID] = m, m
	}
	return true, t.join()
}

// holdNow locks and reads messages that have rows or are in locked batches. It leaves out others,
// unless their batches were looked up: then that is a race.
func (t *tx) holdNow(these string, arg any, told, lookedUp bool) error {
	t.holdRows(these, arg, told)
	if err := t.send(); err != nil {
		return err
	}
	for _, m := range t.rows {
		member := m.in == inRangeBatch || m.in == inOrderedBatch
		if m.in != unclaimed && m.in != onOrderedPath && (!member || t.locked.batches[m.batch] != nil) {
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

// flushRanges notes which plain messages got rows, and which members left their batches.
func (t *tx) flushRanges() {
	if len(t.work.leftRange) > 0 {
		t.run("update @.message set by_range = false where pos = any($1)", t.work.leftRange)
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

// isStale reports whether a message is under another lease by now than when it was delivered in a
// batch. The number of the lease does not tell: it is the same if the server forgot the first
// claim. Of a message with a row the owner in the number of the batch tells.
func isStale(m *message, d *nixie.Delivery) bool {
	in := d.Lease.Handle
	if m.in == inRangeBatch || m.in == inOrderedBatch {
		return in.Pos != 0 && in.Batch != m.batch
	}
	return in.Batch != 0 && m.Number == 1 && in.Batch>>40 != batchesOf(m.Owner)>>40
}

// split gives a member of a batch a row under the same lease, in a transaction of its own: so the
// caller's transaction, which may stay open long, does not hold the lock of the batch. It waits for
// no other call: the caller's transaction may have the only connection of a pool.
func (s *Store) split(ctx context.Context, d *nixie.Delivery) error {
	return s.transact(ctx, s.own, func(t *tx) error {
		own := [][16]byte{d.ID}
		t.lockBatchesOf(own)
		// No row of pending and no stream is waited for: the caller's transaction may hold them.
		t.lock(&t.locked.streams, "lock_stream_of_member.sql", own)
		t.readMessages("c.pos"+which().ids, own)
		if err := t.send(); err != nil {
			return err
		}
		switch m := t.byID[d.ID]; {
		case m == nil || m.in != inRangeBatch && m.in != inOrderedBatch || isStale(m, d):
		case t.locked.batches[m.batch] == nil:
			return errRaced // as in holdNow
		case m.in == inOrderedBatch && !t.locked.streams[m.inStream]: // it stays in its batch
		default:
			t.touch(m)
		}
		return nil
	})
}

// sweepBatches ends leases of batches. Their messages wait to be judged.
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
	t.run("delete from @.batch where n = any($1) and positions is null", over)
	return t.sweepOrdered(over)
}
