package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Positions come from one sequence, of which each value stands for several positions, so that a
// call draws many with few. Positions that a transaction draws and does not use are lost: later
// calls always draw higher ones.

// positionsEach counts the positions that one value of the sequence stands for. The increment of
// the sequence says it, too.
const positionsEach = 32

// positions has those that a transaction may use.
type positions struct {
	first []int64 // of each value that was drawn
	used  int64   // of the first of these
}

// draw asks for n positions. Those that were drawn before are dropped.
func (t *tx) draw(n int) {
	t.drawnPositions = positions{}
	t.read(func(r row) error {
		var first int64
		err := r.Scan(&first)
		t.drawnPositions.first = append(t.drawnPositions.first, first)
		return err
	}, "select nextval('@.position') from generate_series(1, $1::int)", (n+positionsEach-1)/positionsEach)
}

// nextPosition returns one of the positions that were drawn.
func (t *tx) nextPosition() int64 {
	p := &t.drawnPositions
	if p.used == positionsEach {
		p.first, p.used = p.first[1:], 0
	}
	p.used++
	return p.first[0] + p.used - 1
}

// drawn reports whether there are positions to use.
func (t *tx) drawn() bool { return len(t.drawnPositions.first) > 0 }

// maxNumbered is the highest position that an ID can say.
const maxNumbered = 1<<48 - 1

// numbers reports whether IDs of the transaction say a position.
func (t *tx) numbers(pos int64) bool { return !t.callers && pos > 0 && pos <= maxNumbered }

// newID makes the ID of a new message. If it can, the ID says the position of the message, which
// spares the server an index: the last 48 bits are the position, and 14 before them are random.
//
// There need be no index for such IDs because no caller knows one before its message can be found:
// the receipt that names it comes after the commit. Transactions of callers know IDs before they
// commit, so they get none of these.
func (t *tx) newID(pos int64) (id nixie.ID, numbered bool) {
	id = t.store.ids.New(lifecycle.Moment(t.now))
	if !t.numbers(pos) {
		return id, false
	}
	for i := range 6 {
		id[len(id)-1-i] = byte(pos >> (8 * i))
	}
	return id, true
}
