package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// cameBack reports whether a letter from elsewhere is a later death of a message that is
// not on its way here.
func (a *adopting) cameBack(m *message, given *nixie.Letter) bool {
	l := m.letter
	return l != nil && l.id == given.ID && a.locked.letters[l.pos] && lifecycle.CameBack(l.status, m.Public(), m.Generation, given)
}

// dieAgain moves the letter of a message on that died again with a foreign broker.
func (a *adopting) dieAgain(m *message, given *nixie.Letter) error {
	l := m.letter
	if lifecycle.KeepsDead(m.q.settings.DedupeScope) {
		if err := a.free(m.queue, m); err != nil {
			return err
		}
		a.take(m)
	}
	a.outgrow(l) // its class and moment become those that were given
	for i := range given.History {
		if f := &given.History[i]; f.Generation > a.lived[m.pos] {
			a.tell(m, f, f.Steps, f.Decision)
		}
	}
	a.comeBack(m)
	m.DieElsewhere(given)
	m.note = ""
	a.touch(m)
	l.cause, l.class, l.reason, l.signature, l.fingerprint = given.Cause, given.Class, given.Reason, plain(given.Signature), plain(given.Fingerprint)
	l.redrivable, l.needsReview, l.rule = given.Redrivable, given.NeedsReview, plain(given.Rule)
	l.lastFailed, l.died, l.operation = lifecycle.Nanos(given.LastFailedAt), lifecycle.Nanos(given.DiedAt), given.Operation
	if l.inStream {
		a.stir(m.queue, m.stream)
	}
	l.inStream, l.blocks, l.rank = false, false, 0 // it went where our order does not hold
	for _, on := range nixie.Comeback(l.status, given.Status) {
		if err := a.moveLetter(l, on); err != nil {
			return err
		}
		a.record(l.queue, a.actor, on, l.id, a.reason)
	}
	l.note = given.Note
	return nil
}

// readLives reads the last failures of letters that are here.
func (a *adopting) readLives(ids [][16]byte) {
	a.readHeads("pos"+ofLetters, ids)
	a.lived = map[int64]int{}
	a.read(func(r row) error {
		var pos int64
		var doc string
		err := r.Scan(&pos, &doc)
		if f, bad := decodeFailure(doc); bad == nil { // one that cannot be read says nothing
			a.lived[pos] = max(a.lived[pos], f.Generation)
		}
		return err
	}, "select pos, doc from @.history where pos"+ofLetters, ids)
}
