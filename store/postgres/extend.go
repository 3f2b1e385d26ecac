package postgres

import (
	"github.com/nixie-go/nixie/store/engine"
)

// loadLeases locks and reads the messages of deliveries.
func (v *verb) loadLeases(w *engine.Want) error {
	if err := v.holdLeased(w.Leases, false); err != nil {
		return err
	}
	v.facts.Leases = make([]*engine.Message, len(w.Leases))
	for i, d := range w.Leases {
		if d == nil {
			continue
		}
		m := v.byID[d.ID]
		if m == nil || isStale(m, d) {
			continue
		}
		if v.facts.Messages[m.ID] == nil {
			v.facts.Messages[m.ID] = v.message(m)
		}
		v.facts.Leases[i] = v.facts.Messages[m.ID]
	}
	return nil
}

// writeExtended renews leases. If all members of a batch are renewed, the batch keeps its one row.
// Other members, and those with steps, get rows under the same lease.
func (v *verb) writeExtended(c *engine.Changes) {
	members := map[int64][]*message{}
	for _, m := range c.Extended {
		at := v.rows[m.Pos]
		if at.in == inRangeBatch || at.in == inOrderedBatch {
			members[at.batch] = append(members[at.batch], at)
			continue
		}
		v.touch(at)
	}
	for n, list := range members {
		whole := int64(len(list)) == v.locked.batches[n].remains
		if whole {
			v.run("update @.batch set until = $2 where n = $1", n, list[0].Until)
		}
		for _, at := range list {
			if !whole || len(at.Steps) > 0 {
				v.touch(at)
			}
		}
	}
}
