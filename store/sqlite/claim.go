package sqlite

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
)

// claimed is what a transaction handed out: places, to be read afterwards.
type claimed struct {
	rows  []*pendingRow // one lease each, in the order they are handed out
	batch *batchRow     // or one lease for a range
	early int           // how many of rows come before the range
	size  int           // bytes of their bodies
}

// errEnough ends the choice of messages whose bodies are as large as one call
// may hand out.
var errEnough = errors.New("enough")

// fits counts one more body; the first one always fits.
func (got *claimed) fits(size int) error {
	if got.size > 0 && got.size+size > nixie.MaxBatchBytes {
		return errEnough
	}
	got.size += size
	return nil
}

// chosen makes an end by errEnough an ordinary one.
func chosen(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Claim implements store.Queue. The transaction only moves leases; bodies are
// read afterwards by another connection, as what is leased stands still.
func (s *Store) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	want.Max = min(max(want.Max, 1), nixie.MaxBatch)
	if err := nixie.CheckName("queue", queue); err != nil {
		return nil, err
	}
	if want.Lease != 0 && (want.Lease < nixie.MinLease || want.Lease > nixie.MaxLease) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", want.Lease, nixie.MinLease, nixie.MaxLease)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	var dead []ownerRow
	var busy bool
	err := s.view(ctx, s.claimers, func(c conn) (err error) {
		if dead, err = s.someDeadOwners(c); err != nil {
			return err
		}
		busy, err = s.hasWork(c, queue)
		return err
	})
	if err != nil || !busy && len(dead) == 0 {
		return nil, err
	}
	var got claimed
	// A claim that nobody followed to its end would be a lease that nobody has.
	err = s.submit(ctx, 0, true, func(t *tx) error {
		got = claimed{}
		if err := t.sweep(dead); err != nil {
			return err
		}
		return t.claim(&got, queue, want)
	})
	if err != nil {
		return nil, err
	}
	if len(dead) > 0 {
		s.forget(dead)
	}
	return s.deliveries(ctx, queue, &got)
}

// hasWork reports whether a claim could find anything, or a lease is over.
func (s *Store) hasWork(c conn, queue string) (bool, error) {
	now := s.now()
	n, err := c.number(`select exists (select 1 from queue where name = ?1 and paused = 0 and fresh > 0)
		or exists (select 1 from batch where until <= ?2)
		or exists (select 1 from pending where state = 1 and until <= ?2)`, queue, now)
	if n != 0 || err != nil {
		return n != 0, err
	}
	q, err := c.number("select n from queue where name = ? and paused = 0", queue)
	if q == 0 || err != nil {
		return false, err
	}
	for p := nixie.MaxPriority; p >= nixie.MinPriority; p-- {
		n, err := c.number(`select exists (select 1 from pending where queue = ?1 and priority = ?2 and due <= ?3 and state = 0 and crashes = 0)
			or exists (select 1 from pending where queue = ?1 and priority = ?2 and due <= ?3 and state = 0 and crashes > 0)`, q, p, now)
		if n != 0 || err != nil {
			return n != 0, err
		}
	}
	return false, nil
}

// claim hands out up to want.Max messages: a suspect alone, else waiting
// messages and new ones, of which neither can starve the other.
func (t *tx) claim(got *claimed, queue string, want nixie.Want) error {
	q, err := t.queue(queue)
	if err != nil || q == nil || q.paused {
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
	if !want.Fresh {
		suspect, err := t.claimPending(got, q, 1, until, true)
		if err != nil || len(suspect) > 0 {
			got.rows, got.early = suspect, len(suspect)
			return err
		}
	}
	room, err := t.share(q, want.Max)
	if err != nil {
		return err
	}
	if got.rows, err = t.claimPending(got, q, room, until, false); err != nil {
		return err
	}
	got.early = len(got.rows)
	if got.batch, err = t.claimRange(got, q, want.Max-got.early, until); err != nil {
		return err
	}
	taken := got.early
	if got.batch != nil {
		taken += int(got.batch.left)
	}
	if taken < want.Max && got.early == room {
		more, err := t.claimPending(got, q, want.Max-taken, until, false)
		got.rows = append(got.rows, more...)
		return err
	}
	return nil
}

// share is how many of n places messages with a row of their own may take before
// new ones have their turn: three quarters, so that neither starves the other.
// A single place cannot be shared: a higher priority gets it, and else who has
// been due for longer.
func (t *tx) share(q *queueRow, n int) (int, error) {
	added, err := t.firstNew(q)
	if added == 0 || err != nil {
		return n, err
	}
	if n > 1 {
		return n - (n+3)/4, nil
	}
	for p := nixie.MaxPriority; p >= 0; p-- {
		until := t.now
		if p == 0 {
			until = min(until, added)
		}
		due, err := t.number("select exists (select 1 from pending where queue = ? and priority = ? and due <= ? and state = 0 and crashes = 0)", q.n, p, until)
		if due != 0 || err != nil {
			return 1, err
		}
	}
	return 0, nil
}

// firstNew returns when the next new message was enqueued, 0 if there is none,
// and moves the cursor past what ranges pass by.
func (t *tx) firstNew(q *queueRow) (added int64, err error) {
	if q.fresh == 0 {
		if q.cursor < q.last { // all that came since have a row of their own
			q.cursor, q.dirty = q.last, true
		}
		return 0, nil
	}
	next := q.last
	if err := t.each("select pos, enqueued from message where pos > ? and pos <= ? and own = 0 order by pos limit 1", func(row rows) error {
		next, added = row.ColumnInt64(0)&maxSeq-1, row.ColumnInt64(1)
		return nil
	}, q.n<<seqBits|q.cursor, q.n<<seqBits|q.last); err != nil {
		return 0, err
	}
	if next > q.cursor {
		q.cursor, q.dirty = next, true
	}
	return added, nil
}

const bodySize = ", (select length(body) from message m where m.pos = pending.pos)"

// claimPending leases up to n due messages that have a row of their own.
func (t *tx) claimPending(all *claimed, q *queueRow, n int, until int64, suspects bool) ([]*pendingRow, error) {
	query := "select " + pendingColumns + bodySize + " from pending where queue = ? and priority = ? and due <= ? and state = 0 and crashes = 0 order by due, pos limit ?"
	if suspects {
		query = "select " + pendingColumns + bodySize + " from pending where queue = ? and priority = ? and due <= ? and state = 0 and crashes > 0 order by due, pos limit ?"
	}
	var got []*pendingRow
	for p := nixie.MaxPriority; p >= nixie.MinPriority && len(got) < n; p-- {
		err := t.each(query, func(row rows) error {
			if err := all.fits(row.ColumnInt(pendingWidth)); err != nil {
				return err
			}
			got = append(got, scanPending(row))
			return nil
		}, q.n, p, t.now, n-len(got))
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for _, r := range got {
		if err := t.lease(r, until); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// lease counts a claim of a row. A claim of an abandoned message is there to
// be judged and costs no attempt.
func (t *tx) lease(r *pendingRow, until int64) error {
	r.state, r.owner, r.until = stLeased, t.owner, until
	r.number++
	r.deliveries++
	if r.abandoned == "" {
		r.attempts++
	}
	if r.received == 0 {
		r.received = t.now
	}
	return t.run("update pending set state = 1, owner = ?, until = ?, number = ?, deliveries = ?, attempts = ?, received = ? where pos = ?",
		r.owner, r.until, r.number, r.deliveries, r.attempts, r.received, r.pos)
}

// claimRange moves the queue's cursor past up to n new messages and leases them
// by one row.
func (t *tx) claimRange(all *claimed, q *queueRow, n int, until int64) (*batchRow, error) {
	if n <= 0 || q.fresh == 0 {
		return nil, nil
	}
	// Rows of the queue that were added by this very transaction are found too:
	// they are in the table already.
	var first, last, members int64
	if err := chosen(t.each("select pos, length(body) from message where pos > ? and pos <= ? and own = 0 order by pos limit ?", func(row rows) error {
		if err := all.fits(row.ColumnInt(1)); err != nil {
			return err
		}
		last = row.ColumnInt64(0)
		if members == 0 {
			first = last
		}
		members++
		return nil
	}, q.n<<seqBits|q.cursor, q.n<<seqBits|q.last, n)); err != nil {
		return nil, err
	}
	if members == 0 {
		return nil, nil
	}
	q.cursor, q.dirty = last&maxSeq, true
	q.fresh -= members
	if q.fresh == 0 {
		q.cursor = q.last
	}
	if err := t.run("insert into batch (owner, first, last, members, left, claimed, until) values (?, ?, ?, ?, ?, ?, ?)",
		t.owner, first, last, members, members, t.now, until); err != nil {
		return nil, err
	}
	b := &batchRow{n: t.LastInsertRowID(), owner: t.owner, first: first, last: last, left: members, claimed: t.now, until: until}
	t.keepBatch(b.n, b)
	copied := *b // the caller reads it after the transaction
	return &copied, nil
}
