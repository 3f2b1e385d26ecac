package sqlite

import (
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// allow returns why a resolution cannot be applied to a letter, or nil, and the facts about the
// message that it read. It changes nothing.
func (t *tx) allow(l *letterRow, r *store.Resolution, planned int64) (*deadMessage, error) {
	facts := lifecycle.Facts{ID: l.ID, Status: l.Status, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview, Revision: l.Revision,
		Planned: planned, Cause: l.Cause}
	m := &deadMessage{}
	var err error
	switch r.Event {
	case store.OnNote:
		var have int64
		have, err = t.number("select count(*) from note where letter = ?", l.pos)
		facts.Notes = int(have)
	case store.OnRedrive, store.OnRestore, store.OnConfirm:
		if m, err = t.deadMessage(l, r.Event); err == nil {
			if r.Edit != nil {
				m.edited, err = t.readEdited(l.pos)
			}
			facts.Dead, facts.Redrives, facts.TakenKey, facts.BodyAt = m.State == lifecycle.Dead, m.Redrives, m.takenKey, m.bodyAt
			facts.Expired = lifecycle.Past(m.expires, t.at.wall)
		}
	}
	if err != nil {
		return nil, err
	}
	return m, lifecycle.Refuse(facts, r)
}

// deadMessage holds the facts about the message of a letter that a redrive, a restore and a
// confirmation use.
type deadMessage struct {
	pendingRow
	key, stream string
	expires     int64
	bodyAt      string // as of [lifecycle.Facts]
	takenKey    string // the key if the resolution needs it and another message holds it
	q           *queueRow
	edited      *edited // if it is to be edited
}

// deadMessage reads a message that was buried.
func (t *tx) deadMessage(l *letterRow, on store.Event) (*deadMessage, error) {
	m := &deadMessage{pendingRow: pendingRow{pos: l.pos, queue: l.queue}}
	p := &m.pendingRow
	var err error
	if m.q, err = t.queueAt(l.pos); err != nil {
		return nil, err
	}
	if err := t.each(sqlText("dead_message"), func(row rows) error {
		m.stream, m.key = row.ColumnText(8), row.ColumnText(9)
		p.Generation, p.Redrives, p.Number, p.State = row.ColumnInt(0), row.ColumnInt(1), row.ColumnInt64(2), row.ColumnInt(6)
		p.Received, p.priority, p.Gap, m.expires = row.ColumnInt64(3), row.ColumnInt(5), row.ColumnBool(7), row.ColumnInt64(10)
		m.bodyAt = store.BodyAt(row.ColumnText(11))
		return fromJSON(row.ColumnText(4), &p.Steps)
	}, l.pos); err != nil {
		return nil, err
	}
	if m.key == "" || !lifecycle.NeedsKey(on, m.q.settings.DedupeScope) {
		return m, nil
	}
	holder, err := t.number("select pos from dedupe where queue = ? and key = ?", l.queue, m.key)
	if holder != 0 && holder != l.pos {
		m.takenKey = m.key
	}
	return m, err
}
