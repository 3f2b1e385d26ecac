package sqlite

import (
	"context"

	"github.com/nixie-go/nixie"
)

const messageColumns = "m.pos, m.id, m.type, m.key, m.stream, m.dedupe, m.priority, m.body, m.hash, m.headers, m.origin, m.enqueued, m.expires"

// deliveries reads what was claimed. The rows of a batch are frozen: its range
// is behind the cursor and own does not change there.
func (s *Store) deliveries(ctx context.Context, queue string, got *claimed) ([]*nixie.Delivery, error) {
	var out []*nixie.Delivery
	if len(got.rows) == 0 && got.batch == nil {
		return nil, nil
	}
	// The leases are ours whatever happens to ctx: read to the end, so that
	// the caller can settle them.
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
	return out, err
}

// merge puts the i-th row before the member that it came before by turn.
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

func (s *Store) readRows(c conn, queue string, rs []*pendingRow) (out []*nixie.Delivery, err error) {
	for _, r := range rs {
		if err := c.each("select "+messageColumns+" from message m where m.pos = ?", func(row rows) error {
			d := &nixie.Delivery{}
			scanMessage(row, d)
			if r.damage != "" {
				d.Damage = append(d.Damage, r.damage)
			}
			d.Queue, d.State = queue, nixie.Leased
			d.Attempts, d.Deliveries, d.Crashes = r.attempts, r.deliveries, r.crashes
			d.Generation, d.Redrives, d.Steps = r.generation, r.redrives, r.steps
			d.LastReason = nixie.Reason(r.reason)
			d.FirstReceivedAt, d.OrderGap = moment(r.received), r.gap
			d.Abandoned, d.AbandonedBy = r.abandoned != "", r.abandoned
			d.Lease = nixie.Lease{Number: r.number, Owner: s.owner.name, ExpiresAt: moment(r.until), Receipt: nixie.Receipted{Place: r.pos}}
			d.Loan()
			out = append(out, d)
			return nil
		}, r.pos); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Store) readBatch(c conn, queue string, b *batchRow) ([]*nixie.Delivery, error) {
	all := make([]nixie.Delivery, 0, b.left)
	out := make([]*nixie.Delivery, 0, b.left)
	err := c.each("select "+messageColumns+" from message m where m.pos between ? and ? and m.own = 0 order by m.pos", func(row rows) error {
		all = append(all, nixie.Delivery{})
		d := &all[len(all)-1]
		scanMessage(row, d)
		d.Queue, d.State = queue, nixie.Leased
		d.Attempts, d.Deliveries, d.Generation = 1, 1, 1
		d.FirstReceivedAt = moment(b.claimed)
		d.Lease = nixie.Lease{Number: 1, Owner: s.owner.name, ExpiresAt: moment(b.until), Receipt: nixie.Receipted{Place: row.ColumnInt64(0), Batch: b.n}}
		d.Loan()
		out = append(out, d)
		return nil
	}, b.first, b.last)
	if err == nil && int64(len(all)) != b.left {
		err = nixie.Errorf(nixie.CodeInternal, "batch %d has %d messages and should have %d: run nixie verify", b.n, len(all), b.left)
	}
	return out, err
}

// scanMessage reads messageColumns. What cannot be read of them is left out and
// named: one damaged message must not keep the others from being handed out.
func scanMessage(row rows, d *nixie.Delivery) {
	m := &d.Message
	m.ID = columnID(row, 1)
	m.Type, m.Key, m.Stream, m.DedupeKey = row.ColumnText(2), row.ColumnText(3), row.ColumnText(4), row.ColumnText(5)
	m.Priority = row.ColumnInt(6)
	m.Body = columnBytes(row, 7)
	row.ColumnBytes(8, m.Hash[:])
	m.EnqueuedAt, m.ExpiresAt = moment(row.ColumnInt64(11)), moment(row.ColumnInt64(12))
	if err := fromJSON(row.ColumnText(9), &m.Headers); err != nil {
		d.Damage = append(d.Damage, "headers: "+err.Error())
	}
	if err := fromJSON(row.ColumnText(10), &m.Origin); err != nil {
		d.Damage = append(d.Damage, "origin: "+err.Error())
	}
	if nixie.HashBody(m.Body) != m.Hash {
		d.Damage = append(d.Damage, bodyDamage)
	}
}
