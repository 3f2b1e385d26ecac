package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letterKind is what letters often have in common.
type letterKind struct {
	queue       int64
	mtype       string // of its message
	status      nixie.Status
	cause       nixie.Cause
	class       nixie.Class
	reason      nixie.Reason
	signature   string
	fingerprint string
	redrivable  bool
	needsReview bool
	redrives    int // of its message
	attempts    int // of its message, as crashes; 0 while that is on its way
	crashes     int
	rule        string
	died        int64
	resolved    int64
	operation   nixie.ID
	note        string
	revision    int64
	blocks      bool
	numbered    bool

	// Of its own failure, while it is new: what is known of those that are stored is in the
	// history of the message.
	ordinal, at int64
	decision    nixie.Verb
}

// letterRow is a row of the table letter while a transaction uses it. Its number is
// that of its message.
type letterRow struct {
	letterKind
	pos         int64
	id          nixie.ID
	text        string
	doc         string // of its own failure
	firstFailed int64
	lastFailed  int64
	inStream    bool // while its message is dead in an ordered stream
	rank        int64
	notes       int // how many it has
	m           *message
	stored      bool
	touched     bool
}

const letterColumns = `pos, queue, type, redrives, attempts, crashes, id, status, cause, class, reason, signature, fingerprint, redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved, operation, note, revision,
	stream is not null, rank, blocks, (select count(*) from @.note where note.letter = letter.pos)`

// readLetters reads letters whose messages were read before.
func (t *tx) readLetters(where string, args ...any) {
	t.read(func(r row) error {
		l := &letterRow{stored: true}
		if err := r.Scan(&l.pos, &l.queue, &l.mtype, &l.redrives, &l.attempts, &l.crashes, (*idColumn)(&l.id), &l.status, &l.cause, &l.class, &l.reason, &l.signature, &l.fingerprint, &l.redrivable, &l.needsReview, &l.rule, &l.text,
			&l.firstFailed, &l.lastFailed, &l.died, &l.resolved, (*idColumn)(&l.operation), &l.note, &l.revision, &l.inStream, &l.rank, &l.blocks, &l.notes); err != nil {
			return err
		}
		t.letters[l.id] = l
		if m := t.rows[l.pos]; m != nil {
			m.letter, l.m = l, m
		}
		return nil
	}, "select "+letterColumns+" from @.letter where "+where, args...)
}

// touchLetter notes that a letter changed.
func (t *tx) touchLetter(l *letterRow) {
	if !l.touched {
		l.touched = true
		t.work.letters = append(t.work.letters, l)
	}
}

// bury ends a message as dead and makes its letter, or moves the one that it has
// on.
func (t *tx) bury(m *message, st *nixie.Settlement, e lifecycle.End) error {
	b := st.Burial
	blocks := m.Ordered && m.q.settings.Blocks()
	inStream, rank := m.Ordered, m.Rank
	m.Ordered = false
	t.release(m, false)
	l := m.letter
	if l == nil {
		l = &letterRow{letterKind: letterKind{queue: m.queue}, pos: m.pos, m: m}
		l.id, l.numbered = t.newID(l.pos)
		m.letter = l
		t.letters[l.id] = l
	}
	l.died, l.inStream, l.rank, l.blocks = t.now, inStream, rank, blocks
	l.cause, l.signature, l.fingerprint = b.Cause, plain(b.Signature), plain(b.Fingerprint)
	l.redrivable, l.needsReview, l.rule = b.Redrivable, b.NeedsReview, plain(b.Rule)
	l.note = e.Note
	if m.ordinal > 0 {
		l.class, l.reason, l.text = m.last.class, m.last.reason, m.last.text
		l.lastFailed = m.last.failed
		if l.firstFailed == 0 {
			l.firstFailed = m.first.failed
		}
		t.own(l)
	}
	if st.Verb == nixie.Halt {
		t.pause(m.q, "halted by message "+m.ID.String())
	}
	if err := t.moveLetter(l, e.Event); err != nil {
		return err
	}
	t.record(l.queue, e.Actor, e.Event, l.id, e.Reason)
	return nil
}

// moveLetter brings a letter to where the table of moves says.
func (t *tx) moveLetter(l *letterRow, on nixie.Event) error {
	next, err := lifecycle.Next(l.id, l.status, on)
	if err != nil {
		return err
	}
	l.status = next
	l.revision++
	l.resolved = 0
	if !next.Unresolved() {
		l.resolved = t.now
	}
	t.touchLetter(l)
	return nil
}

// follows says why the letter of a message, if it has one, cannot follow its end.
func (m *message) follows(e lifecycle.End) error {
	if m.letter == nil {
		return nil
	}
	_, err := lifecycle.Follow(m.letter.id, m.letter.status, e.Event)
	return err
}

// tell lets a letter say what it is counted by of its message.
func (l *letterRow) tell() {
	if l.m == nil {
		return
	}
	l.mtype, l.redrives, l.attempts, l.crashes = l.m.mtype, l.m.Redrives, l.m.Attempts, l.m.Crashes
	if l.status == nixie.StatusRedriving {
		l.attempts, l.crashes = 0, 0
	}
}

// flushLetters writes letters that are new or changed.
func (t *tx) flushLetters() {
	var fresh, known []*letterRow
	for _, l := range t.work.letters {
		l.tell()
		if l.stored {
			known = append(known, l)
		} else {
			fresh = append(fresh, l)
		}
		l.touched, l.stored = false, true
	}
	t.store.sheets.letters.insert(t, fresh)
	t.countDeaths(fresh)
	t.store.sheets.letters.rewrite(t, known)
}

func (s *Store) letterSheet() sheet[*letterRow, letterKind] {
	common := []column[*letterRow]{
		of("queue", "int", func(l *letterRow) int64 { return l.queue }), of("type", "text", func(l *letterRow) string { return l.mtype }), of("status", "text", func(l *letterRow) string { return string(l.status) }),
		of("cause", "text", func(l *letterRow) string { return plain(string(l.cause)) }), of("class", "text", func(l *letterRow) string { return plain(string(l.class)) }),
		of("reason", "text", func(l *letterRow) string { return plain(string(l.reason)) }), of("signature", "text", func(l *letterRow) string { return l.signature }),
		text("label_low", func(l *letterRow) string { return low(l.signature) }), of("fingerprint", "text", func(l *letterRow) string { return l.fingerprint }),
		of("redrivable", "boolean", func(l *letterRow) bool { return l.redrivable }), of("needs_review", "boolean", func(l *letterRow) bool { return l.needsReview }),
		of("redrives", "int", func(l *letterRow) int { return l.redrives }), of("attempts", "int", func(l *letterRow) int { return l.attempts }), of("crashes", "int", func(l *letterRow) int { return l.crashes }),
		of("rule", "text", func(l *letterRow) string { return l.rule }), of("died", "bigint", func(l *letterRow) int64 { return l.died }),
		of("resolved", "bigint", func(l *letterRow) int64 { return l.resolved }), of("operation", "uuid", func(l *letterRow) *[16]byte { return idOrNull(l.operation) }),
		of("note", "text", func(l *letterRow) string { return plain(l.note) }), of("revision", "bigint", func(l *letterRow) int64 { return l.revision }),
		of("blocks", "boolean", func(l *letterRow) bool { return l.blocks }),
		of("numbered", "boolean", func(l *letterRow) bool { return l.numbered }).fixed(),
		of("ordinal", "bigint", func(l *letterRow) int64 { return l.ordinal }).orNull(int64(0)).fixed(), of("at", "bigint", func(l *letterRow) int64 { return l.at }).orNull(int64(0)).fixed(),
		of("decision", "text", func(l *letterRow) string { return string(l.decision) }).orNull("").fixed(),
	}
	return makeSheet(s, "letter", func(l *letterRow) letterKind { return l.letterKind }, common,
		of("pos", "bigint", func(l *letterRow) int64 { return l.pos }), of("id", "uuid", func(l *letterRow) [16]byte { return l.id }),
		text("doc", func(l *letterRow) string { return l.doc }).fixed(),
		of("text", "text", func(l *letterRow) string { return l.text }), text("text_low", func(l *letterRow) string { return low(l.text) }),
		of("first_failed", "bigint", func(l *letterRow) int64 { return l.firstFailed }), of("last_failed", "bigint", func(l *letterRow) int64 { return l.lastFailed }),
		inStream(func(l *letterRow) string {
			if l.inStream && l.m != nil {
				return l.m.stream
			}
			return ""
		}), of("rank", "bigint", func(l *letterRow) int64 { return l.rank }))
}
