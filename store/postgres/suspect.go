package postgres

import (
	"cmp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// claimSuspects claims all messages that are to be judged, or else a group of suspects. It
// reports whether nothing else may be claimed now: also if suspects wait for a worker that holds
// nothing else.
func (c *claims) claimSuspects(want nixie.Want, owner int64) (done bool, err error) {
	type kind struct {
		judged  bool
		crashes int
	}
	t := c.t
	var kinds []kind
	tried := false
	t.read(func(r row) error {
		var k kind
		err := r.Scan(&k.judged, &k.crashes, &tried)
		kinds = append(kinds, k)
		return err
	}, "suspects_now.sql", c.q.n, t.now)
	if err := t.send(); err != nil {
		return false, err
	}
	until := t.now + int64(cmp.Or(want.Lease, c.q.settings.LeaseOrDefault()))
	for _, k := range kinds {
		most := nixie.MaxBatch
		switch {
		case k.judged:
		case want.NoSuspects:
			return !tried, nil
		default:
			most = min(want.Max, lease.GroupSize(want.Parallel, k.crashes))
		}
		t.read(c.scan, "claim_suspects.sql", c.q.n, t.now, most, ageOf(&c.q.settings), owner, until, k.judged, k.crashes,
			lease.AloneTwice(want.Parallel, k.crashes), nixie.MaxBatchBytes)
		if err := t.send(); err != nil {
			return false, err
		}
		if len(c.list) > 0 {
			return true, t.pass(c)
		}
	}
	return false, nil
}
