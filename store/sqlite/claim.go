package sqlite

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// claimed lists what a transaction handed out. The messages are read afterwards.
type claimed struct {
	rows   []*pendingRow // one lease each, ordered by due rank
	batch  *batchRow     // one lease for a range of new messages
	before []int         // number of members of the range that come before the i-th row
	size   int           // bytes of all bodies

	members []int64 // positions of the members of the range
}

// errEnough ends a query early: the caller has enough rows.
var errEnough = errors.New("enough")

// count returns the number of messages that were handed out.
func (got *claimed) count() int {
	if got.batch == nil {
		return len(got.rows)
	}
	return len(got.rows) + int(got.batch.left)
}

// fits adds the size of one more body and reports whether the call can carry it. It always carries
// the first one.
func (got *claimed) fits(size int) bool {
	if got.size > 0 && got.size+size > nixie.MaxBatchBytes {
		return false
	}
	got.size += size
	return true
}

// chosen returns nil for errEnough.
func chosen(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Claim implements store.Queue. The transaction only writes leases. Another connection reads the
// bodies afterwards, since leased messages do not change.
func (s *Store) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	if err := store.CheckWant(queue, &want); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	found, err := s.precheck(ctx, queue)
	switch {
	case err != nil:
		return nil, err
	case !found.busy && !found.noted:
		// A worker that drains the queue leaves now. If this fails, a later claim says why.
		_ = s.submit(context.WithoutCancel(ctx), 0, false, func(t *tx) error { return t.noteAsked(queue) })
		return nil, nil
	case !found.busy:
		return nil, nil
	}
	var got claimed
	// The caller has to wait for the outcome: it must know the leases that it holds.
	err = s.submit(ctx, 0, true, func(t *tx) error { return t.leaseMessages(&got, queue, want, found.dead) })
	return s.readClaimed(ctx, queue, &got, found.dead, err)
}

// exchange implements Exchange of store.Features.
func (s *Store) exchange(ctx context.Context, settlements []nixie.Settlement, queue string, want nixie.Want) ([]error,
	[]*nixie.Delivery, error) {
	var got claimed
	found, err := s.beforeExchange(ctx, queue, &want)
	var errs []error
	if err != nil {
		errs = s.verbs.Settle(ctx, settlements)
	} else {
		defer s.gate.leave()
		errs, err = s.verbs.Exchange(ctx, settlements, queue, func(tx engine.Tx) error {
			return tx.(*verb).leaseMessages(&got, queue, want, found.dead)
		})
	}
	s.owner.progress.settled(settlements, errs)
	deliveries, err := s.readClaimed(ctx, queue, &got, found.dead, err)
	return errs, deliveries, err
}

// beforeExchange lets the claim of an exchange in, and reads what it has to do. Without an error
// the caller leaves the gate.
func (s *Store) beforeExchange(ctx context.Context, queue string, want *nixie.Want) (found outlook, err error) {
	if err := store.CheckWant(queue, want); err != nil {
		return found, err
	}
	if err := s.enter(ctx); err != nil {
		return found, err
	}
	if found, err = s.precheck(ctx, queue); err != nil {
		s.gate.leave()
	}
	return found, err
}

// leaseMessages ends leases that are over, and leases messages to this process.
func (t *tx) leaseMessages(got *claimed, queue string, want nixie.Want, dead []ownerRow) error {
	*got = claimed{}
	if err := t.sweep(dead); err != nil {
		return err
	}
	return t.claim(got, queue, want)
}

// readClaimed reads what a transaction leased, or forgets it if the transaction failed.
func (s *Store) readClaimed(ctx context.Context, queue string, got *claimed, dead []ownerRow, err error) ([]*nixie.Delivery, error) {
	if err != nil {
		s.owner.progress.forget(got)
		return nil, err
	}
	if len(dead) > 0 {
		s.forget(dead)
	}
	return s.deliveries(ctx, queue, got)
}

// outlook tells a claim what it has to do.
type outlook struct {
	dead  []ownerRow // some owners that are dead
	busy  bool       // a message is due, a lease is over or an owner is dead
	noted bool       // see [store.AskedEvery]
}

// precheck reads what a claim has to do, without a transaction.
func (s *Store) precheck(ctx context.Context, queue string) (found outlook, err error) {
	if err := s.files.check(); err != nil {
		return found, s.giveUp(nixie.CodeUnavailable, err)
	}
	err = s.view(ctx, s.claimers, func(c conn) (err error) {
		if found.dead, err = s.someDeadOwners(c); err != nil || len(found.dead) > 0 {
			found.busy = true
			return err
		}
		now := s.now()
		end, err := s.firstEnd(c)
		if err != nil || isOver(end, now) {
			found.busy = true
			return err
		}
		due, asked, err := s.firstDue(c, queue)
		found.busy, found.noted = isOver(due, now), isNoted(asked, now)
		return err
	})
	return found, err
}

// isNoted reports whether a claim needs no note, because an earlier one has it.
func isNoted(asked, now int64) bool { return now-asked < int64(store.AskedEvery) }

// noteAsked notes now and then that a queue was asked for messages.
func (t *tx) noteAsked(queue string) error {
	q, err := t.queue(queue)
	if err != nil || q == nil || q.paused || isNoted(q.asked, t.now) {
		return err
	}
	q.asked = t.now
	return t.run("update queue set asked = ? where n = ?", q.asked, q.n)
}

// isOver reports whether a moment has come. 0 never comes.
func isOver(at, now int64) bool { return at != 0 && at <= now }

// firstEnd returns when the first lease ends, 0 if there is none.
func (s *Store) firstEnd(c conn) (int64, error) {
	return c.number(sqlText("first_lease_end"))
}

// firstDue returns when the first message of a queue is due, 0 if the queue has none, and when a
// claim was last noted. A new message is due at 1. A claim of a queue that is paused or does not
// exist needs no note.
func (s *Store) firstDue(c conn, queue string) (due, asked int64, err error) {
	asked = math.MaxInt64
	err = c.each(sqlText("first_due"), func(row rows) error {
		due, asked = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	}, queue)
	return due, asked, err
}

// claim hands out messages and, if the worker asks for it, logs that they wait.
func (t *tx) claim(got *claimed, queue string, want nixie.Want) error {
	if err := t.leaseNext(got, queue, want); err != nil {
		return err
	}
	if err := t.freeClaimedKeys(got, queue); err != nil {
		return err
	}
	if want.LogProgress {
		t.store.owner.progress.logClaim(got)
	}
	return nil
}

// leaseNext leases the messages that a worker has to judge, or else a group of suspects, or else up
// to want.Max other messages. The latter are rows of pending and new messages, both in the order of
// their due ranks.
func (t *tx) leaseNext(got *claimed, queue string, want nixie.Want) error {
	q, err := t.queue(queue)
	if err != nil || q == nil || q.paused {
		return err
	}
	if err := t.noteAsked(queue); err != nil {
		return err
	}
	if err := t.recomputeHeads(); err != nil {
		return err
	}
	if err := t.store.register(t); err != nil {
		return err
	}
	lease := int64(want.Lease)
	if lease == 0 {
		lease = int64(q.settings.LeaseOrDefault())
	}
	until := t.now + lease
	if done, err := t.leaseSuspects(got, q, want, until); done || err != nil {
		return err
	}
	rows, err := t.dueRows(q, q.regulars(want.Max), want.Max)
	if err != nil {
		return err
	}
	if len(rows) == 0 && q.evenly(want.Max) {
		n := min(int64(want.Max), q.fresh)
		for i := range n {
			got.members = append(got.members, q.pos(q.cursor+1+i))
		}
		got.batch, err = t.leaseRange(q, q.pos(q.cursor+1), q.pos(q.cursor+n), n, until)
		return err
	}
	fresh, err := t.freshOnes(q, want.Max)
	if err != nil {
		return err
	}
	members := got.choose(&q.settings, rows, fresh, want.Max)
	if err := t.leaseRows(q, got.rows, until); err != nil {
		return err
	}
	for i := range members {
		got.members = append(got.members, fresh[i].pos)
	}
	if members > 0 {
		got.batch, err = t.leaseRange(q, fresh[0].pos, fresh[members-1].pos, int64(members), until)
	}
	return err
}

// evenly reports whether ranges may hand out all of the next n messages beyond the cursor, and one
// call can carry them. Then the claim does not read them.
func (q *queueRow) evenly(n int) bool {
	next := min(int64(n), q.fresh)
	return next > 0 && q.last-q.cursor == q.fresh && q.small(next)
}

// small reports whether one call carries n messages, whichever they are.
func (q *queueRow) small(n int64) bool { return n*q.largest <= nixie.MaxBatchBytes }

// pos returns the position of the message with a sequence number of the queue.
func (q *queueRow) pos(seq int64) int64 { return q.n<<seqBits | seq }

// freshOne is a new message, which a range can hand out.
type freshOne struct {
	pos, enqueued int64
	size          int
}

// choose takes the first n messages by due rank. rows may be in any order; fresh is sorted. It
// returns the number of fresh messages that it took.
func (got *claimed) choose(set *nixie.QueueSettings, rows []*pendingRow, fresh []freshOne, n int) (members int) {
	rank := byDueRank(set, rows)
	for len(got.rows)+members < n && len(rows)+len(fresh) > members {
		first := len(fresh) == members || len(rows) > 0 &&
			cmp.Or(cmp.Compare(rank(rows[0]), set.DueRank(fresh[members].enqueued, 0)), cmp.Compare(rows[0].pos, fresh[members].pos)) < 0
		if !first {
			if !got.fits(fresh[members].size) {
				break
			}
			members++
			continue
		}
		if !got.fits(rows[0].size) {
			break
		}
		got.rows, got.before, rows = append(got.rows, rows[0]), append(got.before, members), rows[1:]
	}
	return members
}

// byDueRank sorts rows by due rank, and returns the function that computes it.
func byDueRank(set *nixie.QueueSettings, rows []*pendingRow) (rank func(*pendingRow) int64) {
	rank = func(r *pendingRow) int64 { return set.DueRank(r.Due, r.priority) }
	slices.SortFunc(rows, func(a, b *pendingRow) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.pos, b.pos)) })
	return rank
}

// regulars returns the query for n rows. It reads the size of each body only when n bodies might be
// too large for one call.
func (q *queueRow) regulars(n int) string {
	if q.small(int64(n)) {
		return sqlText("claim_due")
	}
	return sqlText("claim_due_sized")
}

// dueRows reads the first n rows of each priority that may be handed out.
func (t *tx) dueRows(q *queueRow, query string, n int, more ...any) ([]*pendingRow, error) {
	var got []*pendingRow
	for p := nixie.MaxPriority; p >= nixie.MinPriority; p-- {
		all := len(got) + n
		err := t.each(query, func(row rows) error {
			r := scanPending(row)
			r.size = row.ColumnInt(pendingWidth)
			if next, err := t.isNext(q, r); !next || err != nil {
				return err
			}
			if got = append(got, r); len(got) == all {
				return errEnough
			}
			return nil
		}, append([]any{q.n, p, t.now}, more...)...)
		if chosen(err) != nil {
			return nil, err
		}
	}
	return got, nil
}

// leaseRows leases rows, rowsOnce of them by one statement.
func (t *tx) leaseRows(q *queueRow, rs []*pendingRow, until int64) error {
	for len(rs) >= rowsOnce && !q.settings.Ordered() {
		if err := t.leaseMany(rs[:rowsOnce], until); err != nil {
			return err
		}
		rs = rs[rowsOnce:]
	}
	for _, r := range rs {
		if err := t.lease(q, r, until); err != nil {
			return err
		}
	}
	return nil
}

// leaseMany leases rowsOnce rows that have no stream.
func (t *tx) leaseMany(rs []*pendingRow, until int64) error {
	args := make([]any, firstPosition-1, firstPosition-1+rowsOnce)
	args[0], args[1], args[2] = t.owner, until, t.now
	for _, r := range rs {
		was := *r
		if err := r.Claim(t.owner, until, t.now); err != nil {
			return err
		}
		t.countAgain(&was, r)
		args = append(args, r.pos)
	}
	return t.run(sqlText("lease_rows"), args...)
}

// lease leases one row.
func (t *tx) lease(q *queueRow, r *pendingRow, until int64) error {
	if err := t.pass(q, r); err != nil {
		return err
	}
	was := *r
	if err := r.Claim(t.owner, until, t.now); err != nil {
		return err
	}
	t.countAgain(&was, r)
	return t.run(sqlText("lease_row"),
		r.Owner, r.Until, r.Number, r.Deliveries, r.Attempts, r.Alone, r.Received, r.Gap, r.Claimed, r.pos)
}

// freshOnes reads the first n new messages beyond the queue's cursor.
func (t *tx) freshOnes(q *queueRow, n int) ([]freshOne, error) {
	if q.fresh == 0 {
		if q.cursor < q.last { // all later messages have rows of pending
			q.cursor, q.dirty = q.last, true
		}
		return nil, nil
	}
	// The query also finds messages that this transaction has added.
	got := make([]freshOne, 0, min(int64(n), q.fresh))
	err := t.each(sqlText("claim_new"), func(row rows) error {
		got = append(got, freshOne{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt(2)})
		return nil
	}, q.pos(q.cursor), q.pos(q.last), n)
	if len(got) > 0 && got[0].pos&maxSeq-1 > q.cursor { // no claim reads again what ranges pass by
		q.cursor, q.dirty = got[0].pos&maxSeq-1, true
	}
	return got, err
}

// leaseRange moves the queue's cursor past n new messages and leases them by one row of batch.
func (t *tx) leaseRange(q *queueRow, first, last, n, until int64) (*batchRow, error) {
	q.cursor, q.dirty = last&maxSeq, true
	q.fresh -= n
	if q.fresh == 0 {
		q.cursor = q.last
	}
	if err := t.run("insert into batch (owner, first, last, members, left, claimed, until) values (?, ?, ?, ?, ?, ?, ?)",
		t.owner, first, last, n, n, t.now, until); err != nil {
		return nil, err
	}
	b := &batchRow{n: t.LastInsertRowID(), owner: t.owner, first: first, last: last, left: n, claimed: t.now, until: until}
	t.keepBatch(b.n, b)
	copied := *b // the caller reads it after the transaction
	return &copied, nil
}
