package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// loadPruning reads where pruning was, or the next queue that it looks at.
func (v *verb) loadPruning(w *engine.Want, facts *engine.Facts) error {
	if w.Pruning {
		return v.each("select value from meta where name = 'prune'", func(row rows) error {
			facts.PrunedTo = row.ColumnText(0)
			return nil
		})
	}
	n, err := v.number("select n from queue where n >= ? order by n limit 1", w.From)
	if n == 0 || err != nil {
		return err
	}
	q, err := v.queueAt(n << seqBits)
	if err == nil {
		facts.Next = q.fact()
	}
	return err
}

// Remove implements engine.Tx.
func (v *verb) Remove(p engine.Part) (engine.Removed, error) {
	if p.Queue == nil {
		if p.Step == engine.PruneKeys {
			return v.removeKeys(p)
		}
		return v.removeDocuments(p)
	}
	switch p.Step {
	case engine.PruneMessages:
		return v.removeMessages(p)
	case engine.PruneLetters:
		return v.removeOldLetters(p)
	case engine.PruneAudit:
		return v.removeEntries(p)
	}
	return engine.Removed{}, nil
}

// removeKeys forgets keys of inboxes. A dry run counts them, and skips those that it has counted.
func (v *verb) removeKeys(p engine.Part) (r engine.Removed, err error) {
	if !p.Dry {
		r.Met, err = v.Forget(p.Cutoff, p.Most)
		r.Gone = int64(r.Met)
		return r, err
	}
	return v.countOld("select count(*) from (select 1 from inbox where at <= ? limit ? offset ?)", p)
}

// removeDocuments removes documents that have expired.
func (v *verb) removeDocuments(p engine.Part) (r engine.Removed, err error) {
	if !p.Dry {
		r.Met, err = v.change(sqlText("forget_documents"), p.Cutoff, p.Most)
		r.Gone = int64(r.Met)
		return r, err
	}
	return v.countOld("select count(*) from (select 1 from document where expires > 0 and expires <= ? limit ? offset ?)", p)
}

// countOld counts rows behind those that were counted before.
func (v *verb) countOld(query string, p engine.Part) (engine.Removed, error) {
	n, err := v.number(query, p.Cutoff, p.Most, p.After)
	return engine.Removed{Met: int(n), Gone: n, After: p.After + n}, err
}

// removeMessages removes messages that have no letter. It meets also those that stay.
func (v *verb) removeMessages(p engine.Part) (r engine.Removed, err error) {
	first, last := p.Queue.Number<<seqBits, p.Queue.Number<<seqBits|maxSeq
	r.After = p.After
	var gone []int64
	if err := v.each(sqlText("prunable_messages"), func(row rows) error {
		r.Met++
		r.After = row.ColumnInt64(0)
		if row.ColumnBool(1) {
			gone = append(gone, r.After)
		}
		return nil
	}, p.Cutoff, lifecycle.Dead, max(first, p.After), last, p.Most); err != nil {
		return r, err
	}
	r.Gone = int64(len(gone))
	if p.Dry {
		return r, nil
	}
	for _, pos := range gone {
		if err := v.removeMessage(pos, ofPruned); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (v *verb) removeOldLetters(p engine.Part) (r engine.Removed, err error) {
	r.After = p.After
	var gone []int64
	if err := v.each(sqlText("prunable_letters"), func(row rows) error {
		r.After = row.ColumnInt64(0)
		gone = append(gone, r.After)
		return nil
	}, p.After, p.Queue.Number, p.Cutoff, p.Most); err != nil {
		return r, err
	}
	r.Met, r.Gone = len(gone), int64(len(gone))
	if p.Dry {
		return r, nil
	}
	for _, pos := range gone {
		l, err := v.letter(sqlText("letter_at"), pos)
		if err != nil {
			return r, err
		}
		if err := v.removeLetter(l, nixie.ID{}, ofPruned); err != nil {
			return r, err
		}
		r.Letters = append(r.Letters, l.ID)
	}
	return r, nil
}

// removeEntries removes entries of an audit from the oldest on. The newest one always stays.
func (v *verb) removeEntries(p engine.Part) (r engine.Removed, err error) {
	type entry struct {
		number, at int64
		hash       nixie.Hash
	}
	var list []entry
	if err := v.each("select number, at, hash from audit where queue = ? and number > ? order by number limit ?", func(row rows) error {
		e := entry{number: row.ColumnInt64(0), at: row.ColumnInt64(1)}
		row.ColumnBytes(2, e.hash[:])
		list = append(list, e)
		return nil
	}, p.Queue.Number, p.After, p.Most+1); err != nil {
		return r, err
	}
	for r.Met+1 < len(list) && list[r.Met].at <= p.Cutoff {
		r.Met++
	}
	r.Gone, r.After = int64(r.Met), p.After
	if r.Met == 0 {
		return r, nil
	}
	newest := list[r.Met-1]
	r.After = newest.number
	if p.Dry {
		return r, nil
	}
	r.Newest = newest.number
	if err := v.run(sqlText("keep_anchor"), p.Queue.Number, newest.number, newest.hash); err != nil {
		return r, err
	}
	return r, v.run("delete from audit where queue = ? and number <= ?", p.Queue.Number, newest.number)
}

// writePruning keeps where pruning goes on.
func (v *verb) writePruning(c *engine.Changes) error {
	if c.PrunedTo == nil {
		return nil
	}
	return v.run("insert into meta (name, value) values ('prune', ?) on conflict do update set value = excluded.value", *c.PrunedTo)
}
