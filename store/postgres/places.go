package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// A place comes from one sequence, of which each value stands for several places, so
// that a call draws many with few. Those that are drawn in a transaction and not used are
// gone with it: later calls always draw higher ones.

// placesEach is how many places one value of the sequence stands for, which its
// increment says, too.
const placesEach = 32

// places are those that a transaction may use.
type places struct {
	first []int64 // of each value that was drawn
	used  int64   // of the first of these
}

// draw asks for n places. What was drawn before is dropped.
func (t *tx) draw(n int) {
	t.places = places{}
	t.read(func(r row) error {
		var first int64
		err := r.Scan(&first)
		t.places.first = append(t.places.first, first)
		return err
	}, "select nextval('@.place') from generate_series(1, $1::int)", (n+placesEach-1)/placesEach)
}

// nextPlace is one of the places that were drawn.
func (t *tx) nextPlace() int64 {
	p := &t.places
	if p.used == placesEach {
		p.first, p.used = p.first[1:], 0
	}
	p.used++
	return p.first[0] + p.used - 1
}

// drawn reports whether there are places to use.
func (t *tx) drawn() bool { return len(t.places.first) > 0 }

// maxNumbered is up to which place an ID says it.
const maxNumbered = 1<<48 - 1

// newID makes the ID of a new message. If it can, it says the place of the message, which
// spares the server an index: the last 48 bits are the place, and 14 before them are random.
//
// What makes it safe to have no index for these is that nobody knows such an ID before its
// message can be found: who gives a message this ID is told that it exists. So
// transactions of callers, who know IDs before they commit, get none.
func (t *tx) newID(pos int64) (id nixie.ID, numbered bool) {
	id = t.store.ids.New(lifecycle.Moment(t.now))
	if t.callers || pos > maxNumbered {
		return id, false
	}
	for i := range 6 {
		id[len(id)-1-i] = byte(pos >> (8 * i))
	}
	return id, true
}
