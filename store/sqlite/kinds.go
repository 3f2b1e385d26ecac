package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// kind is what letters have in common. Letters are counted by it, so that
// overviews and filters do not look at each. Whoever changes a letter says what
// it was and what it is; the sums are written once, at the end of the transaction.
type kind struct {
	queue                  int64
	mtype                  string // of the message
	status                 nixie.Status
	cause                  nixie.Cause
	class                  nixie.Class
	reason                 nixie.Reason
	signature, fingerprint string
	redrivable             bool
	needsReview            bool
	redrives               int
	attempts, crashes      int // of the message; 0 while that is on its way
}

// kinds is what a transaction knows of kinds, and how many letters come to each.
type kinds struct {
	numbers map[kind]int64
	known   map[int64]kind // by number
	letters map[int64]int64
}

func scanKind(row rows) kind {
	return kind{
		queue: row.ColumnInt64(0), mtype: row.ColumnText(1), status: nixie.Status(row.ColumnText(2)), cause: nixie.Cause(row.ColumnText(3)),
		class: nixie.Class(row.ColumnText(4)), reason: nixie.Reason(row.ColumnText(5)), signature: row.ColumnText(6), fingerprint: row.ColumnText(7),
		redrivable: row.ColumnBool(8), needsReview: row.ColumnBool(9), redrives: row.ColumnInt(10), attempts: row.ColumnInt(11), crashes: row.ColumnInt(12),
	}
}

func (k *kind) args() []any {
	return []any{
		k.queue, k.mtype, string(k.status), string(k.cause), string(k.class), string(k.reason), k.signature, k.fingerprint,
		k.redrivable, k.needsReview, k.redrives, k.attempts, k.crashes,
	}
}

// kindOf returns the number of a kind and makes it if need be.
func (t *tx) kindOf(k *kind) (int64, error) {
	if n := t.kinds.numbers[*k]; n != 0 {
		return n, nil
	}
	n, err := t.number(sqlText["find_kind"], k.args()...)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		if err := t.run(sqlText["add_kind"], k.args()...); err != nil {
			return 0, err
		}
		n = t.LastInsertRowID()
	}
	t.knowKind(*k, n)
	return n, nil
}

func (t *tx) knowKind(k kind, n int64) {
	if t.kinds.numbers == nil {
		t.kinds.numbers, t.kinds.known = map[kind]int64{}, map[int64]kind{}
		t.kinds.letters = map[int64]int64{}
	}
	t.kinds.numbers[k], t.kinds.known[n] = n, k
}

// countLetter counts a letter of a kind that died at a moment in, by 1, or out,
// by −1, and returns the number of the kind.
func (t *tx) countLetter(k *kind, died, by int64) (int64, error) {
	n, err := t.kindOf(k)
	if err != nil {
		return 0, err
	}
	t.kinds.letters[n] += by
	t.add(counter{what: ofDeaths, subject: n, slot: lifecycle.Hour(died)}, by)
	return n, nil
}

// uncount counts a letter out and returns what it was.
func (t *tx) uncount(l *letterRow) (k kind, err error) {
	k, found := t.kinds.known[l.kind]
	if !found {
		if err = t.each(sqlText["kind"], func(row rows) error {
			k, found = scanKind(row), true
			return nil
		}, l.kind); err != nil {
			return k, err
		}
		if !found {
			return k, nixie.Errorf(nixie.CodeInternal, "letter %s has lost its kind: run nixie verify", l.ID)
		}
		t.knowKind(k, l.kind)
	}
	_, err = t.countLetter(&k, l.Died, -1)
	return k, err
}

// countAs counts a letter whose message is dead as one of the kind that it is, with the type
// of its message.
func (t *tx) countAs(l *letterRow, mtype string, m *lifecycle.Message) (err error) {
	l.kind, err = t.countLetter(&kind{
		queue: l.queue, mtype: mtype, status: l.Status, cause: l.Cause, class: l.Class, reason: l.Reason, signature: l.Signature, fingerprint: l.Fingerprint,
		redrivable: l.Redrivable, needsReview: l.NeedsReview, redrives: m.Redrives, attempts: m.Attempts, crashes: m.Crashes,
	}, l.Died, 1)
	return err
}

// become counts a letter as one of another status, and of a person who let it go if that
// did, and returns the number of its kind. What its message counts is final when that has
// ended, so it is called after.
func (t *tx) become(l *letterRow, status nixie.Status, reviewed bool) (int64, error) {
	k, err := t.uncount(l)
	if err != nil {
		return 0, err
	}
	k.status = status
	if reviewed {
		k.redrivable, k.needsReview = true, false
	}
	if status == nixie.StatusRedriving || status == nixie.StatusResolved && l.Status != nixie.StatusRedriving {
		k.redrives, k.attempts, k.crashes = k.redrives+1, 0, 0
	} else if l.Status == nixie.StatusRedriving {
		if err := t.each("select coalesce(attempts, 1), coalesce(crashes, 0) from log where pos = ?", func(row rows) error {
			k.attempts, k.crashes = row.ColumnInt(0), row.ColumnInt(1)
			return nil
		}, l.pos); err != nil {
			return 0, err
		}
	}
	return t.countLetter(&k, l.Died, 1)
}

// alter counts the letter of a message on its way, if it has one, as one of another
// kind.
func (t *tx) alter(pos int64, change func(*kind)) error {
	l, err := t.letter(sqlText["letter_at"], pos)
	if err != nil || l == nil || l.Status != nixie.StatusRedriving {
		return err
	}
	k, err := t.uncount(l)
	if err != nil {
		return err
	}
	change(&k)
	n, err := t.countLetter(&k, l.Died, 1)
	if err != nil {
		return err
	}
	return t.run("update letter set kind = ? where pos = ?", n, l.pos)
}

// flushKinds writes the sums.
func (t *tx) flushKinds() error {
	for n, by := range t.kinds.letters {
		if err := t.addTo("update kind set letters = letters + ?2 where n = ?1 returning letters", "delete from kind where n = ?", by, n); err != nil {
			return err
		}
	}
	t.kinds = kinds{}
	return nil
}
