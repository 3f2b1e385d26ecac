package postgres

import (
	"sync"
	"sync/atomic"
)

// Each claim looks first whether a lease is over. Rows of leases that ended lie in the
// indexes by the time of their end until PostgreSQL removes them, and a transaction that
// stays open anywhere in the database keeps it from that. So that claims do not step over
// all of them again and again, one looks only behind the moment up to which this process
// has looked before. A lease that became visible after its own end is found by a look at
// everything.

const (
	wholeLook = 100 // how many claims look for each that looks at everything
	wholeIdle = 5   // and how many looks of the watch
)

// looks are those for leases that are over. Likewise, where the cursors of queues are is
// looked for from the move on that was seen before.
type looks struct {
	mu    sync.Mutex
	at    int64 // nothing is over that ended up to here
	n     int
	idle  int             // looks of the watch
	moves map[int64]int64 // by queue

	streams atomic.Int64 // the last that was looked at for being idle
}

// reached is how often the cursor of a queue has moved at least.
func (l *looks) reached(queue int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moves[queue]
}

// reach notes how often it had moved.
func (l *looks) reach(queue, moves int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moves == nil {
		l.moves = map[int64]int64{}
	}
	l.moves[queue] = max(l.moves[queue], moves)
}

// turnBack notes that a cursor has moved less often than was seen: claims do not wait for
// the disk, and a server that crashed forgot some.
func (l *looks) turnBack(queue int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.moves, queue)
}

// since is the moment after which to look, 0 for a look at everything.
func (l *looks) since() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	if l.n%wholeLook == 0 {
		return 0
	}
	return l.at
}

// sinceIdle is since for the watch, which looks more seldom.
func (l *looks) sinceIdle() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle++
	if l.idle%wholeIdle == 0 {
		return 0
	}
	return l.at
}

// note says that nothing was found up to a moment.
func (l *looks) note(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = now
}
