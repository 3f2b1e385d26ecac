package postgres

import (
	"sync"
	"sync/atomic"
)

// Each claim first checks whether a lease is over. The indexes by end of lease keep entries of
// leases that ended until PostgreSQL removes them, and any open transaction of the database
// prevents that. So that claims do not step over these entries again and again, a check reads only
// behind a watermark: the time up to which this process has found nothing. A lease that became
// visible after its own end lies before the watermark; a full check finds it.

const (
	fullCheckEvery     = 100 // every 100th check of claims ignores the watermark and reads all leases
	fullIdleCheckEvery = 5   // every 5th of the watch, which checks less often
)

// seen has what this process has seen, so that its statements need not step over old rows.
type seen struct {
	mu         sync.Mutex
	watermark  int64 // no lease is over that ended up to here
	checks     int
	idleChecks int
	moves      map[string]int64 // how often the cursor of a queue has moved at least

	streams atomic.Int64 // the last stream that was checked for being idle
}

// cursorMoves returns how often the cursor of a queue has moved at least.
func (s *seen) cursorMoves(queue string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moves[queue]
}

// noteMoves notes how often a cursor had moved.
func (s *seen) noteMoves(queue string, moves int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moves == nil {
		s.moves = map[string]int64{}
	}
	s.moves[queue] = max(s.moves[queue], moves)
}

// forgetMoves notes that a cursor has moved less often than this process has seen: claims do not
// wait for the disk, and a server that crashed forgot some.
func (s *seen) forgetMoves(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.moves, queue)
}

// since returns the watermark for the check of a claim, 0 for a full check.
func (s *seen) since() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	if s.checks%fullCheckEvery == 0 {
		return 0
	}
	return s.watermark
}

// sinceIdle is since for the watch.
func (s *seen) sinceIdle() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idleChecks++
	if s.idleChecks%fullIdleCheckEvery == 0 {
		return 0
	}
	return s.watermark
}

// noneOver moves the watermark: a check found nothing up to this time.
func (s *seen) noneOver(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watermark = now
}
