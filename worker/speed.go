package worker

import (
	"math"
	"sync/atomic"
	"time"
)

// speed follows how long handlers take, to know how much work is a quarter of a
// lease.
type speed struct {
	workers  int
	lease    time.Duration
	most     int
	ahead    time.Duration // of work that may be in hand beyond twice the workers; 0 is a quarter of a lease
	single   bool          // a goroutine takes one delivery at a time
	averaged atomic.Uint64 // float64 bits of the average in seconds; 0 is not known
}

const (
	speedShare = 1.0 / 16 // weight of a new duration in the average
	quickest   = 1e-6     // seconds; what is quicker counts as this
)

// add notes a duration. A slow one counts at once, so that a handler that
// becomes slow finds little in hand. Of two at the same moment one may be lost.
func (s *speed) add(took time.Duration) {
	old := math.Float64frombits(s.averaged.Load())
	seconds := max(took.Seconds(), quickest)
	if seconds == old {
		return
	}
	if old != 0 && seconds < 2*old {
		seconds = max(old+(seconds-old)*speedShare, quickest)
	}
	s.averaged.Store(math.Float64bits(seconds))
}

// limit is how many deliveries may be in hand: one for each goroutine, and what
// all of them do in a quarter of a lease.
func (s *speed) limit() int {
	average := math.Float64frombits(s.averaged.Load())
	if average == 0 {
		return s.workers
	}
	quarter := s.lease.Seconds() / 4 * float64(s.workers) / average
	if s.ahead > 0 {
		quarter = min(quarter, float64(s.workers)*max(2, s.ahead.Seconds()/average))
	}
	return int(min(max(quarter, float64(s.workers)), float64(s.most)))
}

// stretch is how many of so many deliveries a goroutine takes at a time: what takes it
// about stretchTime, so that those who are quick do not meet at every one, and others
// begin in their order.
func (s *speed) stretch(of int) int {
	average := math.Float64frombits(s.averaged.Load())
	if s.single || average == 0 || of <= s.workers {
		return of
	}
	n := int(min(stretchTime.Seconds()/average, float64(of/s.workers), maxStretch))
	if n < minStretch {
		return of // all take the next one of the whole
	}
	return n
}

const (
	stretchTime = 50 * time.Microsecond
	minStretch  = 4
	maxStretch  = 32
)
