package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// loadLeases locks and reads the messages of deliveries, and what follows their settlements.
func (v *verb) loadLeases(w *engine.Want) error {
	if names := queuesOf(w.Then); len(names) > 0 {
		v.lockQueues("name = any($1)", names)
		v.readQueues("name = any($1)", names)
	}
	if len(w.Halted) > 0 { // their queues will be paused
		v.run("lock_queues_of.sql", uuids(w.Halted))
	}
	if v.claims != "" {
		if err := v.lockCursor(v.claims); err != nil {
			return err
		}
	}
	if err := v.holdLeased(w.Leases, w.Failures); err != nil {
		return err
	}
	if err := v.openFollowKeys(w.Then); err != nil {
		return err
	}
	for _, q := range v.named {
		v.queue(q)
	}
	v.facts.Leases = make([]*engine.Message, len(w.Leases))
	room := make([]engine.Message, len(w.Leases))
	for i, d := range w.Leases {
		if d == nil {
			continue
		}
		m := v.byID[d.ID]
		if m == nil || isStale(m, d) {
			continue
		}
		if v.facts.Messages[m.ID] == nil {
			v.facts.Messages[m.ID] = v.withLetter(m, &room[i])
		}
		v.facts.Leases[i] = v.facts.Messages[m.ID]
	}
	return nil
}

// openFollowKeys locks the dedupe keys of the messages that follow settlements together with those
// that the settlements free: two calls that take each other's keys would wait for each other.
func (v *verb) openFollowKeys(then []nixie.Message) error {
	var queues []int64
	var keys []string
	for i := range then {
		if q := v.named[then[i].Queue]; q != nil && then[i].DedupeKey != "" {
			queues, keys = append(queues, q.n), append(keys, then[i].DedupeKey)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	for _, m := range v.rows {
		if m.dedupe != "" {
			queues, keys = append(queues, m.queue), append(keys, m.dedupe)
		}
	}
	v.openKeys("select * from unnest($1::int[], $2::text[])", queues, keys)
	return v.send()
}

// loadOver locks and reads messages under leases that are over, if their holders noted how far they
// were. It skips rows that others have locked.
func (v *verb) loadOver(gone []int64) error {
	v.locked.batches = map[int64]*batchRow{}
	v.read(v.keepBatch, "lock_noted_batches.sql", v.now, gone)
	var ids [][16]byte
	var succeeded []bool
	note := func(r row) error {
		var id [16]byte
		var did bool
		err := r.Scan(&id, &did)
		ids, succeeded = append(ids, id), append(succeeded, did)
		return err
	}
	v.read(note, "lock_noted_rows.sql", v.now, gone)
	v.read(note, "lock_noted_stream_rows.sql", v.now, gone)
	if err := v.send(); err != nil {
		return err
	}
	if len(v.locked.batches) > 0 {
		batches := make([]int64, 0, len(v.locked.batches))
		for n := range v.locked.batches {
			batches = append(batches, n)
		}
		v.read(note, "noted_members.sql", batches)
		v.read(note, "lock_noted_ordered.sql", batches)
		if err := v.send(); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	v.holdRest(which().ids, ids, false)
	if err := v.send(); err != nil {
		return err
	}
	for i, id := range ids {
		over := engine.Vanished{Message: v.withLetter(v.byID[id], nil), Progress: lease.Waiting}
		if succeeded[i] {
			over.Progress = lease.Succeeded
		}
		v.facts.Over = append(v.facts.Over, over)
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

// Sent implements engine.Tx.
func (v *verb) Sent(list []*engine.Message) ([]nixie.Message, error) {
	given := map[int64]nixie.Message{}
	v.read(func(r row) error {
		var pos, enqueued int64
		var headers string
		var m nixie.Message
		if err := r.Scan(&pos, &m.Body, &headers, &enqueued); err != nil {
			return err
		}
		_ = fromJSON(headers, &m.Headers) // a notice has no damage: the letter shows it
		m.EnqueuedAt = lifecycle.Moment(enqueued)
		given[pos] = m
		return nil
	}, "select pos, body, coalesce(headers, ''), enqueued from @.message where pos = any($1)",
		eachOf(list, func(m *engine.Message) int64 { return m.Pos }))
	if err := v.send(); err != nil {
		return nil, err
	}
	return eachOf(list, func(m *engine.Message) nixie.Message { return given[m.Pos] }), nil
}
