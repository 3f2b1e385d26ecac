package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// cameBack reports whether a letter from elsewhere is a later death of a message that is not on its
// way here.
func (a *adopting) cameBack(m *message, given *nixie.Letter) bool {
	l := m.letter
	return l != nil && l.ID == given.ID && a.locked.letters[l.pos] && lifecycle.CameBack(l.Status, m.Public(), m.Generation, given)
}

// dieAgain moves on the letter of a message that died again at a foreign broker.
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
	if l.InStream {
		a.markDirty(m.queue, m.stream)
	}
	way, sent := store.Comeback(l.Status, given.Status), l.Operation
	if err := l.DieElsewhere(given, a.now); err != nil {
		return err
	}
	a.touchLetter(l)
	a.ends(l.pos, lifecycle.Elsewhere(sent, given, false)...)
	for _, on := range way {
		a.record(l.queue, a.actor, on, l.ID, a.reason)
	}
	return nil
}

// readLives reads the last failures of letters that exist.
func (a *adopting) readLives(ids [][16]byte) {
	a.readHeads("pos"+which().letters, ids)
	a.lived = map[int64]int{}
	a.read(func(r row) error {
		var pos int64
		var doc string
		err := r.Scan(&pos, &doc)
		if f, bad := decodeFailure(doc); bad == nil { // one that cannot be read says nothing
			a.lived[pos] = max(a.lived[pos], f.Generation)
		}
		return err
	}, "select pos, doc from @.history where pos"+which().letters, ids)
}
