package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// allow says why a resolution cannot be applied to a letter, and reads the message that
// a redrive or a restore is about. It changes nothing.
func (t *tx) allow(l *letterRow, r *store.Resolution, planned int64) (*deadMessage, error) {
	facts := lifecycle.Letter{ID: l.id, Status: l.status, Redrivable: l.redrivable, NeedsReview: l.needsReview, Revision: l.revision, Planned: planned}
	var m *deadMessage
	var err error
	switch r.Event {
	case nixie.OnNote:
		var have int64
		have, err = t.number("select count(*) from note where letter = ?", l.pos)
		facts.Notes = int(have)
	case nixie.OnRedrive, nixie.OnRestore:
		if m, err = t.deadMessage(l, r.Event); err == nil {
			if r.Edit != nil {
				m.edited, err = t.readEdited(l.pos)
			}
			facts.Dead, facts.Redrives, facts.TakenKey = m.dead, m.next.redrives-1, m.takenKey
		}
	}
	if err != nil {
		return nil, err
	}
	return m, lifecycle.Refuse(facts, r)
}

// deadMessage is what a redrive and a restore know of the message of a letter.
type deadMessage struct {
	dead        bool
	key, stream string
	takenKey    string // key, if it needs that and another message holds it
	q           *queueRow
	edited      *edited     // if it is to be edited
	next        *pendingRow // its next life
}

// deadMessage reads a message that was buried.
func (t *tx) deadMessage(l *letterRow, on nixie.Event) (*deadMessage, error) {
	p := &pendingRow{pos: l.pos, queue: l.queue, due: t.now}
	m := &deadMessage{next: p}
	var err error
	if m.q, err = t.queueAt(l.pos); err != nil {
		return nil, err
	}
	if err := t.each("select c.generation, c.redrives, c.number, c.received, c.steps, c.priority, c.state, c.gap, c.stream, c.dedupe from current c where c.pos = +?", func(row rows) error {
		m.dead, m.stream, m.key = row.ColumnInt(6) == stDead, row.ColumnText(8), row.ColumnText(9)
		p.generation, p.redrives, p.number = row.ColumnInt(0)+1, row.ColumnInt(1)+1, row.ColumnInt64(2)
		p.received, p.priority, p.gap = row.ColumnInt64(3), row.ColumnInt(5), row.ColumnBool(7)
		return fromJSON(row.ColumnText(4), &p.steps)
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
