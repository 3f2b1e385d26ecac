package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// leaseSuspects leases all messages that a worker has to judge, or else a group of suspects. It
// reports whether the claim ends there. That is also the case where suspects wait for a worker with
// nothing else in hand.
func (t *tx) leaseSuspects(got *claimed, q *queueRow, want nixie.Want, until int64) (done bool, err error) {
	judged, err := t.judgedRows(q)
	if err != nil {
		return false, err
	}
	if len(judged) > 0 {
		got.takeFirst(&q.settings, judged, nixie.MaxBatch)
		return true, t.leaseRows(q, got.rows, until)
	}
	group, err := t.fewestCrashes(q, want)
	if err != nil || len(group) == 0 {
		return false, err
	}
	if want.NoSuspects {
		n, err := t.number("select exists (select 1 from pending where queue = ? and state = 1 and crashes > 0)", q.n)
		return n == 0, err
	}
	got.takeFirst(&q.settings, group, min(want.Max, lease.GroupSize(want.Parallel, group[0].Crashes)))
	for _, r := range got.rows {
		r.Alone = lease.AloneTwice(want.Parallel, r.Crashes)
		if err := t.lease(q, r, until); err != nil {
			return true, err
		}
	}
	return true, nil
}

// judgedRows reads the messages whose holder vanished and which no worker has judged yet.
func (t *tx) judgedRows(q *queueRow) ([]*pendingRow, error) {
	var got []*pendingRow
	err := t.each(sqlText("claim_judged"), func(row rows) error {
		r := scanPending(row)
		r.size = row.ColumnInt(pendingWidth)
		if next, err := t.isNext(q, r); !next || err != nil {
			return err
		}
		if got = append(got, r); len(got) == nixie.MaxBatch {
			return errEnough
		}
		return nil
	}, q.n, t.now)
	return got, chosen(err)
}

// fewestCrashes reads the suspects with the fewest crashes that may be handed out, enough for one
// group. It goes on to more crashes when all suspects of one number wait for others of their
// streams.
func (t *tx) fewestCrashes(q *queueRow, want nixie.Want) ([]*pendingRow, error) {
	var counts []int
	if err := t.each(sqlText("suspect_crashes"), func(row rows) error {
		counts = append(counts, row.ColumnInt(0))
		return nil
	}, q.n, t.now); err != nil {
		return nil, err
	}
	for _, crashes := range counts {
		got, err := t.dueRows(q, sqlText("claim_suspects"), lease.GroupSize(want.Parallel, crashes), crashes)
		if err != nil || len(got) > 0 {
			return got, err
		}
	}
	return nil, nil
}

// takeFirst takes the first of some rows by due rank, as many as one call carries.
func (got *claimed) takeFirst(set *nixie.QueueSettings, rows []*pendingRow, most int) {
	byDueRank(set, rows)
	for _, r := range rows[:min(most, len(rows))] {
		if !got.fits(r.size) {
			break
		}
		got.rows, got.before = append(got.rows, r), append(got.before, 0)
	}
}
