package worker

import (
	"math"
	"sync/atomic"
	"time"
)

// prefetcher measures how long handlers take, to compute how many deliveries fill a quarter of a
// lease.
type prefetcher struct {
	workers  int
	lease    time.Duration
	most     int
	ahead    time.Duration // of work that may be in hand beyond twice the workers; 0 is a quarter of a lease
	single   bool          // a goroutine takes one delivery at a time
	averaged atomic.Uint64 // float64 bits of the average in seconds; 0 is not known
}

const (
	averageWeight = 1.0 / 16 // weight of a new duration in the average
	quickest      = 1e-6     // seconds; a shorter duration counts as this
)

// observe adds a duration to the average. A slow one counts at once, so that a handler that becomes
// slow has little work in hand. If two goroutines call it at once, one duration may be lost.
func (s *prefetcher) observe(took time.Duration) {
	old := math.Float64frombits(s.averaged.Load())
	seconds := max(took.Seconds(), quickest)
	if seconds == old {
		return
	}
	if old != 0 && seconds < 2*old {
		seconds = max(old+(seconds-old)*averageWeight, quickest)
	}
	s.averaged.Store(math.Float64bits(seconds))
}

// limit returns how many deliveries may be in hand: all that the goroutines run in a quarter of a
// lease, at least one for each.
func (s *prefetcher) limit() int {
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

// chunkSize returns how many of a batch of deliveries a goroutine takes at a time: about chunkTime
// of work. So quick handlers do not contend for each delivery, and slow ones begin in order.
func (s *prefetcher) chunkSize(of int) int {
	average := math.Float64frombits(s.averaged.Load())
	if s.single || average == 0 || of <= s.workers {
		return of
	}
	n := int(min(chunkTime.Seconds()/average, float64(of/s.workers), maxChunk))
	if n < minChunk {
		return of // one chunk: all goroutines take the next delivery of it
	}
	return n
}

const (
	chunkTime = 50 * time.Microsecond
	minChunk  = 4
	maxChunk  = 32
)
