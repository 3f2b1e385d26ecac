package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Jitter tells how much of a delay is random, so that messages which failed together do not come
// back together.
type Jitter string

// The jitters.
const (
	JitterFull         Jitter = "full"         // anything from nothing to the whole delay
	JitterEqual        Jitter = "equal"        // one half, and anything up to the other half
	JitterProportional Jitter = "proportional" // up to Fraction of the delay more or less
	JitterAdditive     Jitter = "additive"     // the delay and From to To more
	JitterNone         Jitter = "none"         // exactly the delay
)

// Jitters lists every jitter once.
func Jitters() []Jitter {
	return []Jitter{JitterFull, JitterEqual, JitterProportional, JitterAdditive, JitterNone}
}

func (b Backoff) checkJitter() error {
	if !slices.Contains(Jitters(), b.Jitter) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff jitter is %q: choose full, equal, proportional, additive or none", b.Jitter)
	}
	if !(b.Fraction > 0 && b.Fraction <= 1) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff fraction is %v: give a number above 0 up to 1", b.Fraction)
	}
	if b.From < 0 || b.To > nixie.MaxDelay || b.From > b.To {
		return nixie.Errorf(nixie.CodeInvalid,
			"backoff adds from %s to %s: give durations from 0 to %s, the first not longer than the second", b.From, b.To, nixie.MaxDelay)
	}
	if b.Jitter == JitterAdditive && b.To == 0 {
		return nixie.Errorf(nixie.CodeInvalid, "backoff jitter is additive without a range: set From and To")
	}
	return nil
}

// jittered applies the jitter to a delay. It computes the fraction from the delay itself, so that
// rounding never leaves the band.
func (b Backoff) jittered(delay time.Duration, random uint64) time.Duration {
	switch b.Jitter {
	case JitterFull:
		return share(delay, random)
	case JitterEqual:
		return delay - delay/2 + share(delay/2, random)
	case JitterProportional:
		part := min(time.Duration(float64(delay)*b.Fraction), delay)
		return delay - part + share(2*part, random)
	case JitterAdditive:
		return delay + b.From + share(max(b.To-b.From-1, 0), random)
	}
	return delay
}

// share maps a random number to 0…d, both ends included.
func share(d time.Duration, random uint64) time.Duration {
	part, _ := bits.Mul64(random, uint64(d)+1)
	return time.Duration(part)
}

// randomOf returns the random number of one failure: a hash of message, generation and attempt. So
// a replay of the same history gives the same delays, and messages that failed together come back
// at different times.
func randomOf(d *nixie.Delivery) uint64 { return randomFor(d.ID, d.Generation, d.Attempts) }

func randomFor(id nixie.ID, generation, attempt int) uint64 {
	var seed [32]byte
	copy(seed[:16], id[:])
	binary.BigEndian.PutUint64(seed[16:], uint64(generation))
	binary.BigEndian.PutUint64(seed[24:], uint64(attempt))
	sum := sha256.Sum256(seed[:])
	return binary.BigEndian.Uint64(sum[:8])
}
