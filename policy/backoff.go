package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// Jitter says how much of a delay is left to the dice.
type Jitter string

// The jitters.
const (
	JitterFull Jitter = "full" // anything from nothing to the whole delay
	JitterNone Jitter = "none" // exactly the delay
)

// Backoff is the formula for the wait before a retry: Base·Factorⁿ⁻¹ after the
// nth failure, at most Cap, then jitter, so that the cap is a promise. A factor
// of 1 makes it a fixed delay. Zero fields mean the defaults.
type Backoff struct {
	Base   time.Duration // after the first failure; 0 is 1 s, −1 is no waiting at all
	Factor float64       // 1…[MaxFactor]; 0 is 2
	Cap    time.Duration // 0 is 15 min, −1 is none but [nixie.MaxDelay]
	Jitter Jitter        // empty is full
}

// or fills zero fields.
func (b Backoff) or(otherwise Backoff) Backoff {
	return Backoff{
		Base:   orElse(b.Base, otherwise.Base),
		Factor: orElse(b.Factor, otherwise.Factor),
		Cap:    orElse(b.Cap, otherwise.Cap),
		Jitter: orElse(b.Jitter, otherwise.Jitter),
	}
}

// check looks at a backoff that is filled up.
func (b Backoff) check() error {
	if b.Base != none && (b.Base < time.Nanosecond || b.Base > nixie.MaxDelay) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff base is %s: give a duration up to %s, or −1 for no waiting", b.Base, nixie.MaxDelay)
	}
	if !(b.Factor >= 1 && b.Factor <= MaxFactor) { // so written that NaN fails
		return nixie.Errorf(nixie.CodeInvalid, "backoff factor is %v: give a number from 1 to %d", b.Factor, MaxFactor)
	}
	if b.Cap != none && (b.Cap < MinSpacing || b.Cap > nixie.MaxDelay) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff cap is %s: give a duration from %s to %s, or −1 for none", b.Cap, MinSpacing, nixie.MaxDelay)
	}
	if b.Jitter != JitterFull && b.Jitter != JitterNone {
		return nixie.Errorf(nixie.CodeInvalid, "backoff jitter is %q: choose full or none", b.Jitter)
	}
	return nil
}

// Ceiling is the delay after the nth failure before jitter: within 0 and the
// cap for every n; an n below 1 counts as 1.
func (b Backoff) Ceiling(n int) time.Duration {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return 0
	}
	most := b.Cap
	if most < 0 {
		most = nixie.MaxDelay
	}
	// A float saturates at infinity where an integer would turn round.
	grown := float64(b.Base) * math.Pow(b.Factor, float64(max(n, 1)-1))
	if grown < float64(most) {
		return time.Duration(grown)
	}
	return most
}

// Delay is the wait after the nth failure: the ceiling or, with full jitter, the
// dice's share of it, and at least [MinSpacing] unless there is no waiting at
// all. The same dice give the same delay.
func (b Backoff) Delay(n int, dice uint64) time.Duration {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return 0
	}
	delay := b.Ceiling(n)
	if b.Jitter == JitterFull {
		share, _ := bits.Mul64(dice, uint64(delay)+1)
		delay = time.Duration(share)
	}
	return max(delay, MinSpacing)
}

// String says it in words.
func (b Backoff) String() string {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return "no waiting"
	}
	most := "without cap"
	if b.Cap >= 0 {
		most = "up to " + short(b.Cap)
	}
	return fmt.Sprintf("%s ×%s %s, %s jitter", short(b.Base), strconv.FormatFloat(b.Factor, 'g', -1, 64), most, b.Jitter)
}

// throw throws the dice of one failure. They come from what the failure is, so
// that the same history gives the same delays wherever it is replayed, while
// messages that failed together come back apart.
func throw(d *nixie.Delivery) uint64 {
	var seed [32]byte
	copy(seed[:16], d.ID[:])
	binary.BigEndian.PutUint64(seed[16:], uint64(d.Generation))
	binary.BigEndian.PutUint64(seed[24:], uint64(d.Attempts))
	sum := sha256.Sum256(seed[:])
	return binary.BigEndian.Uint64(sum[:8])
}
