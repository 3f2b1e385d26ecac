package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// Write implements engine.Tx. Rows that change alike are written by one statement.
func (v *verb) Write(c *engine.Changes) error {
	if c.Adjusted != nil {
		if err := v.saveSettings(v.queues[c.Adjusted.Name]); err != nil {
			return err
		}
	}
	for _, write := range [...]func(*engine.Changes) error{
		v.writeMessages, v.writeEdits, v.writeLetters, v.writeKeys, v.writeNotes, v.writeItems, v.removeLetters, v.writeAudit,
	} {
		if err := write(c); err != nil {
			return err
		}
	}
	for _, queue := range c.Wakes {
		v.wake(queue)
	}
	return nil
}

// Reorder implements engine.Tx.
func (v *verb) Reorder(q *engine.Queue, to *nixie.QueueSettings) error {
	return v.reorder(v.queues[q.Name], to)
}

// writeMessages writes messages that are queued again, and messages that have ended.
func (v *verb) writeMessages(c *engine.Changes) error {
	var queued []*letterFacts
	var leaving []int64 // the table log
	for _, m := range c.Messages {
		f := v.letters[m.Pos]
		f.q.dirty = true
		if f.waits.pos != 0 {
			if err := v.leave(&held{pendingRow: f.message, was: f.waits, q: f.q}); err != nil {
				return err
			}
		} else {
			f.q.ended[f.log]--
		}
		if f.message.OnItsWay() {
			queued, leaving = append(queued, f), append(leaving, m.Pos)
			continue
		}
		if err := v.writeLog(&f.message, m.Note, toLogAgain); err != nil {
			return err
		}
		f.q.ended[f.message.State]++
	}
	if len(queued) == 0 {
		return nil
	}
	return v.enterPending(queued, leaving)
}

func same[T any](v T) T { return v }

// enterPending gives messages that had ended rows of pending, in their streams. No range of a batch
// covers them from then on.
func (v *verb) enterPending(list []*letterFacts, positions []int64) error {
	if err := v.dissolve(positions...); err != nil {
		return err
	}
	at := listed(positions, same)
	if err := v.run("delete from log where pos in (select value from json_each(?))", at); err != nil {
		return err
	}
	if err := v.run("update message set own = 1 where pos in (select value from json_each(?))", at); err != nil {
		return err
	}
	if err := v.each(sqlText("newest_reasons"), func(row rows) error {
		v.letters[row.ColumnInt64(0)].message.reason = row.ColumnText(1)
		return nil
	}, at); err != nil {
		return err
	}
	for _, f := range list {
		p := &f.message
		if p.Rank == engine.LastRank {
			p.Rank = v.appendRank(f.q)
		}
		if p.Ordered {
			var err error
			if p.stream, err = v.openStream(f.q, f.name); err != nil {
				return err
			}
			v.markDirty(f.q, p.stream)
		}
		if err := v.insertPending(p); err != nil {
			return err
		}
	}
	return nil
}

// letterMove has the new values of letters that change alike.
type letterMove struct {
	facet, resolved, moves int64
	status                 nixie.Status
	note                   string
	operation              nixie.ID
}

// writeLetters writes letters and moves their counts.
func (v *verb) writeLetters(c *engine.Changes) error {
	moved := map[*engine.Message]bool{}
	for _, m := range c.Messages {
		moved[m] = true
	}
	alike := map[letterMove][]int64{}
	for _, l := range c.Letters {
		f := v.letters[l.Pos]
		if err := v.moveInStream(f); err != nil {
			return err
		}
		if err := v.recount(f, moved[l.Message]); err != nil {
			return err
		}
		move := letterMove{f.facet, f.Resolved, f.Revision - f.was.Revision, f.Status, f.Note, f.Operation}
		alike[move] = append(alike[move], f.pos)
	}
	for move, positions := range alike {
		if err := v.run(sqlText("letters_move"), move.facet, string(move.status), move.resolved, move.note, sumOf(move.note),
			idOrNull(move.operation), move.moves, listed(positions, same)); err != nil {
			return err
		}
	}
	return nil
}

// moveInStream takes a letter out of its stream, or returns it there.
func (v *verb) moveInStream(f *letterFacts) (err error) {
	switch {
	case f.was.InStream == f.InStream:
		return nil
	case f.InStream:
		if f.stream, err = v.openStream(f.q, f.name); err != nil {
			return err
		}
	default:
		v.markDirty(f.q, f.stream)
		f.stream = 0
	}
	v.markDirty(f.q, f.stream)
	return v.run("update letter set stream = ?, blocks = ? where pos = ?", orNull(f.stream), f.Blocks, f.pos)
}

// recount moves the count of a letter to the facet that it has now. A facet has the counters of a
// message that has ended.
func (v *verb) recount(f *letterFacts, moved bool) error {
	k, err := v.leaveFacet(&f.was)
	if err != nil {
		return err
	}
	k.status, k.redrivable, k.needsReview = f.Status, f.Redrivable, f.NeedsReview
	k.signature, k.fingerprint = f.Signature, f.Fingerprint
	if moved {
		k.redrives, k.attempts, k.crashes = f.message.Redrives, f.message.Attempts, f.message.Crashes
	}
	if f.facet, err = v.addToFacet(&k, f.Died, 1); err != nil {
		return err
	}
	if f.Redrivable != f.was.Redrivable || f.NeedsReview != f.was.NeedsReview || f.Rule != "" {
		if err := v.run("update letter set redrivable = ?, needs_review = ?, rule = ?, rule_sum = ? where pos = ?", f.Redrivable,
			f.NeedsReview, f.Rule, sumOf(f.Rule), f.pos); err != nil {
			return err
		}
	}
	if f.Signature != f.was.Signature || f.Fingerprint != f.was.Fingerprint {
		return v.run("update letter set signature = ?, fingerprint = ? where pos = ?", f.Signature, f.Fingerprint, f.pos)
	}
	return nil
}

// writeKeys frees dedupe keys, and gives others to messages.
func (v *verb) writeKeys(c *engine.Changes) error {
	for _, m := range c.Freed {
		if err := v.run("delete from dedupe where queue = ? and key = ? and pos = ?", m.Queue.Number, m.Dedupe, m.Pos); err != nil {
			return err
		}
	}
	for own, m := range c.Taken {
		if err := v.run("insert into dedupe (queue, key, pos) values (?, ?, ?)", own.Queue, own.Key, m.Pos); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) writeNotes(c *engine.Changes) error {
	for _, n := range c.Notes {
		if err := v.run(sqlText("add_note"), n.Letter.Pos, v.now, n.By, n.Text, sumOf(n.By, n.Text)); err != nil {
			return err
		}
	}
	return nil
}

// writeItems decides items, alike ones by one statement. Then it ends those of redrives that were
// overtaken: the same call may have decided them.
func (v *verb) writeItems(c *engine.Changes) error {
	type decision struct {
		operation           nixie.ID
		state, group, error string
	}
	alike := map[decision][]int64{}
	for _, it := range c.Decided {
		d := decision{it.Operation, string(it.State), it.Group, it.Error}
		alike[d] = append(alike[d], it.Letter)
	}
	for d, positions := range alike {
		if err := v.run(sqlText("decide_items"), d.state, d.error, d.group, v.now, d.operation, listed(positions, same)); err != nil {
			return err
		}
	}
	for _, e := range c.Ends {
		if err := v.ends(e.Letter, e.Ending); err != nil {
			return err
		}
	}
	for _, r := range c.Regrouped {
		if err := v.run(sqlText("regroup_item"), r.Letter.Fingerprint, r.Letter.Operation, r.Letter.Pos, r.Was); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) removeLetters(c *engine.Changes) error {
	for _, gone := range c.Removed {
		if err := v.removeLetter(&v.letters[gone.Letter.Pos].letterRow, gone.Operation, ofPurged); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) writeAudit(c *engine.Changes) error {
	for _, e := range c.Audit {
		if err := v.chain(e.Queue, e.AuditEntry); err != nil {
			return err
		}
	}
	return nil
}
