package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// deliveries reads the claimed messages. The rows of a batch do not change while the batch exists:
// its range is behind the cursor, and own stays 0 there.
func (s *Store) deliveries(ctx context.Context, queue string, got *claimed) ([]*nixie.Delivery, error) {
	var out []*nixie.Delivery
	if len(got.rows) == 0 && got.batch == nil {
		return nil, nil
	}
	// This process has the leases even if ctx has ended. Read to the end, so that the caller can
	// settle them.
	err := s.view(context.WithoutCancel(ctx), s.claimers, func(c conn) error {
		rows, err := s.readRows(c, queue, got.rows)
		if err != nil || got.batch == nil {
			out = rows
			return err
		}
		members, err := s.readBatch(c, queue, got.batch)
		out = merge(rows, members, got.before)
		return err
	})
	s.byMachine(out)
	return out, err
}

// byMachine tells the moments of deliveries by the machine's clock: workers compare them with that.
func (s *Store) byMachine(ds []*nixie.Delivery) {
	now := s.look()
	if now.lead() == 0 {
		return
	}
	for _, d := range ds {
		for _, at := range [...]*time.Time{&d.EnqueuedAt, &d.FirstReceivedAt, &d.RedrivenAt, &d.Lease.ExpiresAt,
			&d.Patience.FailingSince, &d.Patience.RefusedSince} {
			*at = now.shown(lifecycle.Nanos(*at))
		}
	}
}

// merge inserts the i-th row before the member that has a later due rank.
func merge(rows, members []*nixie.Delivery, before []int) []*nixie.Delivery {
	if len(rows) == 0 {
		return members
	}
	out := make([]*nixie.Delivery, 0, len(rows)+len(members))
	for i, row := range rows {
		for len(out)-i < before[i] && len(members) > 0 {
			out, members = append(out, members[0]), members[1:]
		}
		out = append(out, row)
	}
	return append(out, members...)
}

// readRows reads the messages of rows, rowsOnce of them by one query.
func (s *Store) readRows(c conn, queue string, rs []*pendingRow) ([]*nixie.Delivery, error) {
	var bodies bodyPool
	all := make([]nixie.Delivery, len(rs))
	at := make(map[int64]int, len(rs))
	for i, r := range rs {
		at[r.pos] = i
	}
	read := func(row rows) error {
		i, known := at[row.ColumnInt64(0)]
		if !known {
			return nil
		}
		scanMessage(row, &all[i], &bodies)
		s.describe(&all[i], queue, rs[i])
		return nil
	}
	for i, r := range rs {
		if r.Redrives > 0 {
			if err := c.each("select operation, first_failed from letter where pos = ?", func(row rows) error {
				all[i].Operation, all[i].FirstFailedAt = columnID(row, 0), lifecycle.Moment(row.ColumnInt64(1))
				return nil
			}, r.pos); err != nil {
				return nil, err
			}
		}
	}
	left := rs
	for ; len(left) >= rowsOnce; left = left[rowsOnce:] {
		args := make([]any, firstPosition-1, firstPosition-1+rowsOnce)
		for _, r := range left[:rowsOnce] {
			args = append(args, r.pos)
		}
		if err := c.each(sqlText("read_messages"), read, args...); err != nil {
			return nil, err
		}
	}
	for _, r := range left {
		if err := c.each(sqlText("read_message"), read, r.pos); err != nil {
			return nil, err
		}
	}
	out := make([]*nixie.Delivery, 0, len(rs))
	for i := range all {
		if all[i].Lease.Number > 0 { // skips a row whose message is gone
			out = append(out, &all[i])
		}
	}
	return out, nil
}

// describe copies the columns of a row to its delivery.
func (s *Store) describe(d *nixie.Delivery, queue string, r *pendingRow) {
	if r.damage != "" {
		d.Damage = append(d.Damage, r.damage)
	}
	d.Queue, d.State = queue, nixie.Leased
	d.Attempts, d.Deliveries, d.Crashes = r.Attempts, r.Deliveries, r.Crashes
	d.Generation, d.Redrives, d.Steps, d.Patience = r.Generation, r.Redrives, r.Steps, r.Patience
	d.LastReason = nixie.Reason(r.reason)
	d.FirstReceivedAt, d.RedrivenAt, d.OrderGap = lifecycle.Moment(r.Received), lifecycle.Moment(r.Redriven), r.Gap
	d.Abandoned, d.AbandonedBy, d.AbandonedAlone = r.Abandoned != "", r.Abandoned, r.Abandoned != "" && r.Alone
	d.Lease = nixie.Lease{
		Number: r.Number, Owner: s.owner.name, ExpiresAt: lifecycle.Moment(r.Until), Handle: nixie.LeaseHandle{Pos: r.pos},
	}
	lease.Ready(d)
}

func (s *Store) readBatch(c conn, queue string, b *batchRow) ([]*nixie.Delivery, error) {
	all := make([]nixie.Delivery, b.left)
	out := make([]*nixie.Delivery, 0, b.left)
	var bodies bodyPool
	err := c.each(sqlText("read_range"), func(row rows) error {
		if len(out) == len(all) {
			return errEnough
		}
		d := &all[len(out)]
		out = append(out, d)
		scanMessage(row, d, &bodies)
		d.Queue, d.State = queue, nixie.Leased
		d.Attempts, d.Deliveries, d.Generation = 1, 1, 1
		d.FirstReceivedAt = lifecycle.Moment(b.claimed)
		d.Lease = nixie.Lease{
			Number: 1, Owner: s.owner.name, ExpiresAt: lifecycle.Moment(b.until),
			Handle: nixie.LeaseHandle{Pos: row.ColumnInt64(0), Batch: b.n},
		}
		lease.Ready(d)
		return nil
	}, b.first, b.last)
	if err == nil && len(out) < len(all) {
		// If this process was slow to read, it may have lost the lease, and other processes have
		// taken members since. It hands out what is left, and the store refuses its settlements.
		var there int64
		there, err = c.number("select count(*) from batch where n = ?", b.n)
		if err == nil && there == 0 {
			return out, nil
		}
	}
	if err == nil && len(out) < len(all) || errors.Is(err, errEnough) {
		err = nixie.Errorf(nixie.CodeInternal,
			"batch %d does not have the %d messages that it should have: run nixie verify", b.n, len(all))
	}
	return out, err
}

// bodyPool allocates the bodies of one batch in large pieces. A handler that keeps one body keeps
// at most bodyPoolSize bytes of other bodies in memory.
type bodyPool struct{ free []byte }

const bodyPoolSize = 32 << 10

// take returns n bytes. A large body gets memory of its own.
func (s *bodyPool) take(n int) []byte {
	if n > bodyPoolSize/8 {
		return make([]byte, n)
	}
	if n > len(s.free) {
		s.free = make([]byte, bodyPoolSize)
	}
	b := s.free[:n:n]
	s.free = s.free[n:]
	return b
}

// scanMessage reads the columns of message_columns. It leaves out and names damaged columns: one
// damaged message must not keep the others from being handed out.
func scanMessage(row rows, d *nixie.Delivery, bodies *bodyPool) {
	m := &d.Message
	row.ColumnBytes(1, m.ID[:])
	m.Type = row.ColumnText(2)
	m.Priority = row.ColumnInt(3)
	m.Body = bodies.take(row.ColumnLen(4))
	row.ColumnBytes(4, m.Body)
	row.ColumnBytes(5, m.Hash[:])
	m.EnqueuedAt, m.ExpiresAt = lifecycle.Moment(row.ColumnInt64(6)), lifecycle.Moment(row.ColumnInt64(7))
	if !lease.Intact(d) {
		d.Damage = append(d.Damage, bodyDamage)
	}
	if !row.ColumnBool(8) {
		return
	}
	m.Key, m.Stream, m.DedupeKey = row.ColumnText(9), row.ColumnText(10), row.ColumnText(11)
	if err := fromJSON(row.ColumnText(12), &m.Headers); err != nil {
		d.Damage = append(d.Damage, "headers: "+err.Error())
	}
	if err := fromJSON(row.ColumnText(13), &m.Origin); err != nil {
		d.Damage = append(d.Damage, "origin: "+err.Error())
	}
}
