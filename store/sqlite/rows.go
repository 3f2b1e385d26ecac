package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// pendingRow is a row of the table pending.
type pendingRow struct {
	lifecycle.Message
	pos, queue int64
	priority   int
	damage     string // why steps cannot be read
	stream     int64  // its number, 0 is none
	reason     string // of the newest failure; "" is none
	size       int    // bytes of the body, where a claim asked for it
}

func (t *tx) insertPending(p *pendingRow) error {
	t.count(p, 1)
	if p.isSimple() {
		row := t.added.add(toPending)
		row.num(p.pos).num(p.queue).num(lifecycle.Queued).num(int64(p.priority)).num(p.Due).num(int64(p.Attempts)).num(int64(p.Deliveries))
		row.num(p.Number).num(p.Received).num(p.Claimed).strOrNull(p.reason).strOrNull(lease.PatienceText(p.Patience))
		return t.added.end(row)
	}
	row := t.added.add(toPendingWhole)
	row.num(p.pos).num(p.queue).num(int64(p.State)).num(int64(p.priority)).num(p.Due).num(int64(p.Attempts)).num(int64(p.Deliveries))
	row.num(int64(p.Crashes)).num(int64(p.Generation)).num(int64(p.Redrives)).num(p.Number).num(p.Owner).num(p.Until).num(p.Received)
	row.strOrNull(p.Abandoned).strOrNull(textOf(jsonText(len(p.Steps) == 0, p.Steps))).numOrNull(p.stream).num(p.Rank).flag(p.MayPass)
	row.flag(p.Gap).num(p.Claimed).strOrNull(p.reason).flag(p.Alone).num(p.Redriven).strOrNull(lease.PatienceText(p.Patience))
	return t.added.end(row)
}

// isSimple reports whether add_simple_pending can add the row: a queued message without a stream,
// in its first generation.
func (p *pendingRow) isSimple() bool {
	return p.State == lifecycle.Queued && p.Crashes == 0 && p.Generation == 1 && p.Redrives == 0 && p.Owner == 0 && p.Until == 0 &&
		p.Abandoned == "" && len(p.Steps) == 0 && p.stream == 0 && p.Rank == 0 && !p.MayPass && !p.Gap
}

// pendingWidth is the number of columns that scanPending reads.
const pendingWidth = 25

func scanPending(row rows) *pendingRow {
	p := &pendingRow{
		pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), priority: row.ColumnInt(3), stream: row.ColumnInt64(16),
		reason: row.ColumnText(21),
		Message: lifecycle.Message{
			State: row.ColumnInt(2), Due: row.ColumnInt64(4),
			Attempts: row.ColumnInt(5), Deliveries: row.ColumnInt(6), Crashes: row.ColumnInt(7),
			Generation: row.ColumnInt(8), Redrives: row.ColumnInt(9),
			Number: row.ColumnInt64(10), Owner: row.ColumnInt64(11), Until: row.ColumnInt64(12),
			Received: row.ColumnInt64(13), Abandoned: row.ColumnText(14), Ordered: row.ColumnInt64(16) != 0, Rank: row.ColumnInt64(17),
			MayPass: row.ColumnBool(18), Gap: row.ColumnBool(19), Claimed: row.ColumnInt64(20), Alone: row.ColumnBool(22),
			Redriven: row.ColumnInt64(23),
		},
	}
	if err := fromJSON(row.ColumnText(15), &p.Steps); err != nil {
		p.Steps, p.damage = nil, "steps: "+err.Error()
	}
	var err error
	if p.Patience, err = lease.ReadPatience(row.ColumnText(24)); err != nil {
		p.damage = "patience: " + err.Error()
	}
	return p
}

// pending returns the row of its own of the message at pos, or nil.
func (t *tx) pending(pos int64) (*pendingRow, error) {
	var p *pendingRow
	err := t.each(sqlText("pending_row"), func(row rows) error {
		p = scanPending(row)
		return nil
	}, pos)
	return p, err
}

// letterRow is a row of the table letter.
type letterRow struct {
	lifecycle.Letter
	pos, queue int64
	stream     int64 // number of the stream in which its message is dead; 0 is none
	facet      int64
}

func (t *tx) letter(query string, arg any) (*letterRow, error) {
	var l *letterRow
	err := t.each(query, func(row rows) error {
		l = &letterRow{
			pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), stream: row.ColumnInt64(7), facet: row.ColumnInt64(10),
			Letter: lifecycle.Letter{
				ID: columnID(row, 2), Status: nixie.Status(row.ColumnText(3)),
				Redrivable: row.ColumnBool(4), NeedsReview: row.ColumnBool(5), Revision: row.ColumnInt64(6),
				InStream: row.ColumnInt64(7) != 0, Rank: row.ColumnInt64(8), Blocks: row.ColumnBool(9),
				Died: row.ColumnInt64(11), Operation: columnID(row, 12), FirstFailed: row.ColumnInt64(13),
				Cause: nixie.Cause(row.ColumnText(14)),
			},
		}
		return nil
	}, arg)
	return l, err
}

// writeLog writes how a message ended. It leaves the counters out for a clean first generation,
// which is the usual case.
func (t *tx) writeLog(p *pendingRow, note string, whole target) error {
	if p.Attempts == 1 && p.Deliveries == 1 && p.Crashes == 0 && p.Generation == 1 && p.Redrives == 0 && p.Number == 1 &&
		len(p.Steps) == 0 && note == "" && !p.Gap {
		row := t.added.add(toLog)
		return t.added.end(row.num(p.pos).num(int64(p.State)).num(p.Ended).num(p.Received))
	}
	row := t.added.add(whole)
	row.num(p.pos).num(int64(p.State)).num(p.Ended).num(p.Received).num(int64(p.Attempts)).num(int64(p.Deliveries)).num(int64(p.Crashes))
	row.num(int64(p.Generation)).num(int64(p.Redrives)).num(p.Number).strOrNull(textOf(jsonText(len(p.Steps) == 0, p.Steps)))
	return t.added.end(row.strOrNull(note).flag(p.Gap).numOrNull(p.Redriven))
}

// insertLetter adds a letter, with the name of its message's stream.
func (t *tx) insertLetter(l *letterRow, flow string) error {
	row := t.added.add(toLetter)
	row.num(l.pos).bytes(l.ID[:]).num(l.facet).num(l.queue)
	row.str(string(l.Status)).str(string(l.Cause)).str(string(l.Class)).str(string(l.Reason))
	row.str(l.Signature).str(l.Fingerprint).flag(l.Redrivable).flag(l.NeedsReview).str(l.Rule).str(l.Text)
	row.num(l.FirstFailed).num(l.LastFailed).num(l.Died).str(l.Note).numOrNull(l.stream).num(l.Rank).flag(l.Blocks)
	row.strOrNull(flow).num(sumOf(l.Rule)).num(sumOf(l.Note))
	return t.added.end(row)
}

// writeDeath writes another death of a message to its letter. appendFailure has written the text of
// the failure already.
func (t *tx) writeDeath(l *letterRow) error {
	return t.run(sqlText("letter_dies_again"),
		l.facet, string(l.Status), string(l.Cause), string(l.Class), string(l.Reason), l.Signature, l.Fingerprint, l.Redrivable,
		l.NeedsReview, l.Rule, sumOf(l.Rule),
		l.FirstFailed, l.LastFailed, l.Died, l.Resolved, idOrNull(l.Operation), l.Note, sumOf(l.Note), l.Revision, orNull(l.stream), l.Rank,
		l.Blocks, l.pos)
}

func idOrNull(id nixie.ID) any {
	if id.IsZero() {
		return nil
	}
	return id
}
