package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letterKind has what many letters of a call have in common.
type letterKind struct {
	lifecycle.Letter
	queue    int64
	mtype    string // of its message
	redrives int    // of its message
	attempts int    // of its message, as crashes; 0 while that is on its way
	crashes  int
	numbered bool

	// Of the failure by which its message died, while the letter is new. A stored letter has it in
	// the history of the message.
	ordinal, at int64
	decision    nixie.Verb
}

// letterRow is a row of the table letter while a transaction uses it. Its position is that of its
// message.
type letterRow struct {
	letterKind
	pos     int64
	doc     string // of its own failure
	notes   int    // how many it has
	was     bool   // it was in its stream when the engine read it
	m       *message
	stored  bool
	touched bool
}

// common returns the row without what differs from letter to letter.
func (l *letterRow) common() letterKind {
	k := l.letterKind
	k.ID, k.Text, k.FirstFailed, k.LastFailed, k.InStream, k.Rank = nixie.ID{}, "", 0, 0, false, 0
	return k
}

// readLetters reads letters whose messages were read before.
func (t *tx) readLetters(where string, args ...any) {
	t.read(func(r row) error {
		l := &letterRow{stored: true}
		if err := r.Scan(&l.pos, &l.queue, &l.mtype, &l.redrives, &l.attempts, &l.crashes, (*idColumn)(&l.ID), &l.Status, &l.Cause,
			&l.Class, &l.Reason, &l.Signature, &l.Fingerprint, &l.Redrivable, &l.NeedsReview, &l.Rule, &l.Text,
			&l.FirstFailed, &l.LastFailed, &l.Died, &l.Resolved, (*idColumn)(&l.Operation), &l.Note, &l.Revision, &l.InStream, &l.Rank,
			&l.Blocks, &l.notes); err != nil {
			return err
		}
		t.letters[l.ID] = l
		if m := t.rows[l.pos]; m != nil {
			m.letter, l.m = l, m
		}
		return nil
	}, fill("read_letters.sql", "where", where), args...)
}

// touchLetter notes that a letter changed.
func (t *tx) touchLetter(l *letterRow) {
	if !l.touched {
		l.touched = true
		t.work.letters = append(t.work.letters, l)
	}
}

// tell copies into a letter what it is counted by of its message.
func (l *letterRow) tell() {
	if l.m == nil {
		return
	}
	l.mtype, l.redrives, l.attempts, l.crashes = l.m.mtype, l.m.Redrives, l.m.Attempts, l.m.Crashes
	if l.Status == nixie.StatusRedriving {
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
	t.store.bulk.letters.insert(t, fresh)
	t.countDeaths(fresh)
	t.store.bulk.letters.rewrite(t, known)
}

func (s *Store) letterWriter() bulkWriter[*letterRow, letterKind] {
	common := []column[*letterRow]{
		of("queue", "int", func(l *letterRow) int64 { return l.queue }), of("type", "text", func(l *letterRow) string { return l.mtype }),
		of("status", "text", func(l *letterRow) string { return string(l.Status) }),
		of("cause", "text", func(l *letterRow) string { return plain(string(l.Cause)) }),
		of("class", "text", func(l *letterRow) string { return plain(string(l.Class)) }),
		of("reason", "text", func(l *letterRow) string { return plain(string(l.Reason)) }),
		of("signature", "text", func(l *letterRow) string { return plain(l.Signature) }),
		text("label_low", func(l *letterRow) string { return low(plain(l.Signature)) }),
		of("fingerprint", "text", func(l *letterRow) string { return plain(l.Fingerprint) }),
		of("redrivable", "boolean", func(l *letterRow) bool { return l.Redrivable }),
		of("needs_review", "boolean", func(l *letterRow) bool { return l.NeedsReview }),
		of("redrives", "int", func(l *letterRow) int { return l.redrives }),
		of("attempts", "int", func(l *letterRow) int { return l.attempts }),
		of("crashes", "int", func(l *letterRow) int { return l.crashes }),
		of("rule", "text", func(l *letterRow) string { return plain(l.Rule) }),
		of("died", "bigint", func(l *letterRow) int64 { return l.Died }),
		of("resolved", "bigint", func(l *letterRow) int64 { return l.Resolved }),
		of("operation", "uuid", func(l *letterRow) *[16]byte { return idOrNull(l.Operation) }),
		of("note", "text", func(l *letterRow) string { return plain(l.Note) }),
		of("revision", "bigint", func(l *letterRow) int64 { return l.Revision }),
		of("blocks", "boolean", func(l *letterRow) bool { return l.Blocks }),
		of("numbered", "boolean", func(l *letterRow) bool { return l.numbered }).fixed(),
		of("ordinal", "bigint", func(l *letterRow) int64 { return l.ordinal }).orNull(int64(0)).fixed(),
		of("at", "bigint", func(l *letterRow) int64 { return l.at }).orNull(int64(0)).fixed(),
		of("decision", "text", func(l *letterRow) string { return string(l.decision) }).orNull("").fixed(),
	}
	return makeBulkWriter(s, "letter", (*letterRow).common, common,
		of("pos", "bigint", func(l *letterRow) int64 { return l.pos }), of("id", "uuid", func(l *letterRow) [16]byte { return l.ID }),
		text("doc", func(l *letterRow) string { return l.doc }).fixed(),
		of("text", "text", func(l *letterRow) string { return plain(l.Text) }),
		text("text_low", func(l *letterRow) string { return low(plain(l.Text)) }),
		of("first_failed", "bigint", func(l *letterRow) int64 { return l.FirstFailed }),
		of("last_failed", "bigint", func(l *letterRow) int64 { return l.LastFailed }),
		inStream(func(l *letterRow) string {
			if l.InStream && l.m != nil {
				return l.m.stream
			}
			return ""
		}), of("rank", "bigint", func(l *letterRow) int64 { return l.Rank }))
}
