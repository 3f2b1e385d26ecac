package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// facet holds the properties by which letters are counted. Letters with equal properties share a
// row of the table facet, so overviews and filters read those rows instead of each letter. Code
// that changes a letter takes it out of its facet and adds it to another one; the transaction
// writes the sums once, at its end.
type facet struct {
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
	attempts, crashes      int // of the message; 0 while it is queued or leased
}

// facets caches the facets that a transaction has met, with the letters to add to each.
type facets struct {
	numbers map[facet]int64
	known   map[int64]facet // by number
	letters map[int64]int64
}

func scanFacet(row rows) facet {
	return facet{
		queue: row.ColumnInt64(0), mtype: row.ColumnText(1), status: nixie.Status(row.ColumnText(2)), cause: nixie.Cause(row.ColumnText(3)),
		class: nixie.Class(row.ColumnText(4)), reason: nixie.Reason(row.ColumnText(5)), signature: row.ColumnText(6),
		fingerprint: row.ColumnText(7),
		redrivable:  row.ColumnBool(8), needsReview: row.ColumnBool(9), redrives: row.ColumnInt(10), attempts: row.ColumnInt(11),
		crashes: row.ColumnInt(12),
	}
}

func (f *facet) args() []any {
	return []any{
		f.queue, f.mtype, string(f.status), string(f.cause), string(f.class), string(f.reason), f.signature, f.fingerprint,
		f.redrivable, f.needsReview, f.redrives, f.attempts, f.crashes,
	}
}

// facetOf returns the number of a facet and adds the row if it is missing.
func (t *tx) facetOf(f *facet) (int64, error) {
	if n := t.facets.numbers[*f]; n != 0 {
		return n, nil
	}
	n, err := t.number(sqlText("find_facet"), f.args()...)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		if err := t.run(sqlText("add_facet"), f.args()...); err != nil {
			return 0, err
		}
		n = t.LastInsertRowID()
	}
	t.knowFacet(*f, n)
	return n, nil
}

func (t *tx) knowFacet(f facet, n int64) {
	if t.facets.numbers == nil {
		t.facets.numbers, t.facets.known = map[facet]int64{}, map[int64]facet{}
		t.facets.letters = map[int64]int64{}
	}
	t.facets.numbers[f], t.facets.known[n] = n, f
}

// addToFacet adds a letter, with its time of death, to the counts of a facet, or with by = −1
// takes it out. It returns the number of the facet.
func (t *tx) addToFacet(f *facet, died, by int64) (int64, error) {
	n, err := t.facetOf(f)
	if err != nil {
		return 0, err
	}
	t.countInFacet(n, died, by)
	return n, nil
}

func (t *tx) countInFacet(n, died, by int64) {
	t.facets.letters[n] += by
	t.add(counter{what: ofDeaths, subject: n, slot: lifecycle.Hour(died)}, by)
}

// facetOfLetter returns the facet that a letter is counted in.
func (t *tx) facetOfLetter(l *letterRow) (f facet, err error) {
	f, found := t.facets.known[l.facet]
	if found {
		return f, nil
	}
	if err = t.each(sqlText("facet"), func(row rows) error {
		f, found = scanFacet(row), true
		return nil
	}, l.facet); err != nil {
		return f, err
	}
	if !found {
		return f, nixie.Errorf(nixie.CodeInternal, "letter %s has lost its facet: run nixie verify", l.ID)
	}
	t.knowFacet(f, l.facet)
	return f, nil
}

// leaveFacet takes a letter out of the counts of its facet and returns that facet.
func (t *tx) leaveFacet(l *letterRow) (facet, error) {
	f, err := t.facetOfLetter(l)
	if err == nil {
		t.countInFacet(l.facet, l.Died, -1)
	}
	return f, err
}

// joinFacet adds the letter of a dead message to the counts of the facet that its columns and the
// type of its message name.
func (t *tx) joinFacet(l *letterRow, mtype string, m *lifecycle.Message) (err error) {
	l.facet, err = t.addToFacet(&facet{
		queue: l.queue, mtype: mtype, status: l.Status, cause: l.Cause, class: l.Class, reason: l.Reason, signature: l.Signature,
		fingerprint: l.Fingerprint,
		redrivable:  l.Redrivable, needsReview: l.NeedsReview, redrives: m.Redrives, attempts: m.Attempts, crashes: m.Crashes,
	}, l.Died, 1)
	return err
}

// changeFacet moves the count of a letter whose message is queued or leased to a changed facet. A
// message without such a letter changes nothing.
func (t *tx) changeFacet(pos int64, change func(*facet)) error {
	l, err := t.letter(sqlText("letter_at"), pos)
	if err != nil || l == nil || l.Status != nixie.StatusRedriving {
		return err
	}
	f, err := t.leaveFacet(l)
	if err != nil {
		return err
	}
	change(&f)
	n, err := t.addToFacet(&f, l.Died, 1)
	if err != nil {
		return err
	}
	return t.run("update letter set facet = ? where pos = ?", n, l.pos)
}

// flushFacets adds the sums to the rows of facet.
func (t *tx) flushFacets() error {
	for n, by := range t.facets.letters {
		if err := t.addTo("update facet set letters = letters + ?2 where n = ?1 returning letters", "delete from facet where n = ?", by,
			n); err != nil {
			return err
		}
	}
	t.facets = facets{}
	return nil
}
