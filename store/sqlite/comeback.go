package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// cameBack finds the letter that an adopted letter continues: its message went to a foreign broker
// and died again there.
func (t *tx) cameBack(given *nixie.Letter) (*letterRow, error) {
	l, err := t.letter(sqlText("letter_with_id"), given.ID)
	if l == nil || err != nil {
		return nil, err
	}
	state, generation := int64(0), 0
	if err := t.each("select state, coalesce(generation, 1) from log where pos = ?", func(r rows) error {
		state, generation = r.ColumnInt64(0), r.ColumnInt(1)
		return nil
	}, l.pos); err != nil {
		return nil, err
	}
	if !lifecycle.CameBack(l.Status, lifecycle.State(int(state)), generation, given) {
		return nil, nil
	}
	return l, nil
}

// dieAgain writes the new death to the letter that is here. Every refusal comes before the first
// write.
func (t *tx) dieAgain(l *letterRow, given *nixie.Letter, actor, reason string) error {
	q, err := t.queueAt(l.pos)
	if err != nil {
		return err
	}
	was, m := 0, lifecycle.Message{}
	if err := t.each("select state, coalesce(number, 1), received, coalesce(redriven, 0) from log where pos = ?", func(row rows) error {
		was, m.Number, m.Received, m.Redriven = row.ColumnInt(0), row.ColumnInt64(1), row.ColumnInt64(2), row.ColumnInt64(3)
		return nil
	}, l.pos); err != nil {
		return err
	}
	if lifecycle.KeepsDead(q.settings.DedupeScope) {
		key, err := t.dedupeKey(l.pos)
		if err == nil {
			err = t.takeFreeKey(q, key, l.pos)
		}
		if err != nil {
			return err
		}
	}
	if err := t.leaveStream(l); err != nil {
		return err
	}
	m.DieElsewhere(given)
	if err := t.run(sqlText("die_elsewhere"),
		m.State, m.Ended, m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives, m.Number, m.Received, m.Redriven,
		l.pos); err != nil {
		return err
	}
	q.ended[was]--
	q.ended[lifecycle.Dead]++
	q.dirty = true
	h := &held{q: q, pendingRow: pendingRow{pos: l.pos, queue: l.queue, Message: lifecycle.Message{Redrives: m.Redrives}}}
	if err := t.appendHistory(h, given.History); err != nil {
		return err
	}
	return t.writeDeathElsewhere(l, given, actor, reason)
}

// appendHistory appends the failures of later generations than those that are stored.
func (t *tx) appendHistory(h *held, list []nixie.Failure) error {
	had := 0
	if err := t.each("select doc from failure where pos = +?", func(r rows) error {
		var doc failureDoc
		if fromJSON(r.ColumnText(0), &doc) == nil { // a damaged failure has no generation
			had = max(had, doc.Generation)
		}
		return nil
	}, h.pos); err != nil {
		return err
	}
	for i := range list {
		if f := &list[i]; f.Generation > had {
			if err := t.appendFailure(h, f, f.Decision, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDeathElsewhere writes the last death to the letter. It takes the letter out of its stream,
// since the message went to a broker where the order of this queue does not hold.
func (t *tx) writeDeathElsewhere(l *letterRow, given *nixie.Letter, actor, reason string) error {
	k, err := t.leaveFacet(l)
	if err != nil {
		return err
	}
	way, sent := store.Comeback(l.Status, given.Status), l.Operation
	if err := l.DieElsewhere(given, t.now); err != nil {
		return err
	}
	l.stream = 0
	died := lifecycle.Message{Redrives: given.Message.Redrives, Attempts: given.Message.Attempts, Crashes: given.Message.Crashes}
	if err := t.joinFacet(l, k.mtype, &died); err != nil {
		return err
	}
	if err := t.writeDeath(l); err != nil {
		return err
	}
	if err := t.ends(l.pos, lifecycle.Elsewhere(sent, given, false)...); err != nil {
		return err
	}
	for _, on := range way {
		if err := t.audit(l.queue, actor, on, l.ID, reason); err != nil {
			return err
		}
	}
	return nil
}
