package policy

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Formula says how the wait grows with the number n of failures in this life.
// The first failure has n = 1.
type Formula string

// The formulas.
const (
	Exponential Formula = "exponential" // Base·Factorⁿ⁻¹
	Linear      Formula = "linear"      // Base + Step·(n−1)
	Fixed       Formula = "fixed"       // Base
	Fibonacci   Formula = "fibonacci"   // Base times 1, 1, 2, 3, 5, 8 …
	List        Formula = "list"        // the nth of Delays; after the last one Cap or, without one, the last
	Custom      Formula = "custom"      // Func(n)
)

// Formulas lists every formula once.
func Formulas() []Formula {
	return []Formula{Exponential, Linear, Fixed, Fibonacci, List, Custom}
}

// Backoff says how long to wait before a retry: the formula, then at most Cap,
// then jitter, and the result is brought between Min and Cap once more. So the
// cap is a promise that no jitter breaks. Everything saturates: the wait after
// any number of failures is never negative and never beyond [nixie.MaxDelay].
// Zero fields mean the defaults. A Backoff never changes, nor may what Delays
// and Func refer to.
type Backoff struct {
	Formula Formula       // empty is exponential
	Base    time.Duration // of every formula but list and custom; 0 is 1 s, −1 is no waiting at all, whatever the formula
	Factor  float64       // exponential: 1…[MaxFactor]; 0 is 2
	Step    time.Duration // linear: 0 is Base
	Delays  []time.Duration
	Func    func(n int) time.Duration // pure; where it panics the wait is Cap
	Cap     time.Duration             // 0 is 15 min, −1 is none but [nixie.MaxDelay]
	Min     time.Duration             // 0 is [MinSpacing], and less cannot be asked for

	Jitter   Jitter        // empty is full
	Fraction float64       // proportional: up to this part of the wait more or less; above 0 up to 1; 0 is 0.3
	From, To time.Duration // additive: at least From and less than To is added
}

// or fills zero fields. Delays and Func belong to their formula: another
// formula does not inherit them.
func (b Backoff) or(otherwise Backoff) Backoff {
	b.Formula = orElse(b.Formula, otherwise.Formula)
	b.Base = orElse(b.Base, otherwise.Base)
	b.Factor = orElse(b.Factor, otherwise.Factor)
	b.Step = orElse(b.Step, otherwise.Step)
	b.Cap = orElse(b.Cap, otherwise.Cap)
	b.Min = orElse(b.Min, otherwise.Min)
	b.Jitter = orElse(b.Jitter, otherwise.Jitter)
	b.Fraction = orElse(b.Fraction, otherwise.Fraction)
	if b.From == 0 && b.To == 0 {
		b.From, b.To = otherwise.From, otherwise.To
	}
	if b.Delays == nil && b.Formula == List {
		b.Delays = otherwise.Delays
	}
	if b.Func == nil && b.Formula == Custom {
		b.Func = otherwise.Func
	}
	return b
}

// check looks at a backoff that is filled up.
func (b Backoff) check() error {
	if !slices.Contains(Formulas(), b.Formula) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff formula is %q: choose exponential, linear, fixed, fibonacci, list or custom", b.Formula)
	}
	if b.Base != none && (b.Base < time.Nanosecond || b.Base > nixie.MaxDelay) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff base is %s: give a duration up to %s, or −1 for no waiting", b.Base, nixie.MaxDelay)
	}
	if !(b.Factor >= 1 && b.Factor <= MaxFactor) { // so written that NaN fails
		return nixie.Errorf(nixie.CodeInvalid, "backoff factor is %v: give a number from 1 to %d", b.Factor, MaxFactor)
	}
	if b.Step < 0 || b.Step > nixie.MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid, "backoff step is %s: give a duration up to %s", b.Step, nixie.MaxDelay)
	}
	if b.Cap != none && (b.Cap < MinSpacing || b.Cap > nixie.MaxDelay) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff cap is %s: give a duration from %s to %s, or −1 for none", b.Cap, MinSpacing, nixie.MaxDelay)
	}
	if b.Min != 0 && (b.Min < MinSpacing || b.Min > b.most()) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff min is %s: give a duration from %s to the cap, %s", b.Min, MinSpacing, b.most())
	}
	if b.Formula == Custom && b.Func == nil {
		return nixie.Errorf(nixie.CodeInvalid, "backoff formula is custom without a function: set Func")
	}
	if err := b.checkDelays(); err != nil {
		return err
	}
	return b.checkJitter()
}

// checkBase refuses a first wait that the cap would cut: nobody means that.
func (b Backoff) checkBase() error {
	if b.Formula == List || b.Formula == Custom || b.Base <= b.most() {
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "backoff base is %s, which is more than the cap, %s: raise the cap, as in 'base=%s cap=%s'", b.Base, short(b.Cap), short(b.Base), short(min(4*b.Base, nixie.MaxDelay)))
}

func (b Backoff) checkDelays() error {
	if b.Formula != List {
		return nil
	}
	if len(b.Delays) == 0 || len(b.Delays) > MaxDelays {
		return nixie.Errorf(nixie.CodeInvalid, "backoff delays has %d entries: give from 1 to %d", len(b.Delays), MaxDelays)
	}
	for i, d := range b.Delays {
		if d < 0 || d > nixie.MaxDelay {
			return nixie.Errorf(nixie.CodeInvalid, "backoff delay %d is %s: give a duration from 0 to %s", i+1, d, nixie.MaxDelay)
		}
	}
	return nil
}

// most is the cap that applies.
func (b Backoff) most() time.Duration {
	if b.Cap < 0 {
		return nixie.MaxDelay
	}
	return b.Cap
}

// least is the shortest wait.
func (b Backoff) least() time.Duration { return max(b.Min, MinSpacing) }

// Ceiling is the delay after the nth failure before jitter: within 0 and the
// cap for every n; an n below 1 counts as 1.
func (b Backoff) Ceiling(n int) time.Duration {
	return b.or(defaultBackoff()).ceiling(n)
}

// ceiling is that of a backoff that is filled up.
func (b Backoff) ceiling(n int) time.Duration {
	if b.Base < 0 {
		return 0
	}
	return min(max(b.grown(max(n, 1)), 0), b.most())
}

// grown is the formula; it may be beyond the cap.
func (b Backoff) grown(n int) time.Duration {
	switch b.Formula {
	case Fixed:
		return b.Base
	case Linear:
		return sumUpTo(b.Base, orElse(b.Step, b.Base), uint64(n)-1, b.most())
	case Fibonacci:
		return fibonacci(b.Base, n, b.most())
	case List:
		switch {
		case n <= len(b.Delays):
			return b.Delays[n-1]
		case b.Cap < 0 && len(b.Delays) > 0:
			return b.Delays[len(b.Delays)-1]
		}
		return b.most()
	case Custom:
		return b.called(n)
	}
	// A float saturates at infinity where an integer would turn round.
	grown := float64(b.Base) * math.Pow(b.Factor, float64(n-1))
	if grown < float64(b.most()) {
		return time.Duration(grown)
	}
	return b.most()
}

// called asks a function that is not ours.
func (b Backoff) called(n int) (d time.Duration) {
	defer func() {
		if recover() != nil {
			d = b.most()
		}
	}()
	return b.Func(n)
}

// sumUpTo is base + step·times, at most most.
func sumUpTo(base, step time.Duration, times uint64, most time.Duration) time.Duration {
	over, added := bits.Mul64(uint64(step), times)
	if over > 0 || base >= most || added >= uint64(most-base) {
		return most
	}
	return base + time.Duration(added)
}

// fibonacci is base times the nth of 1, 1, 2, 3, 5 …, at most most.
func fibonacci(base time.Duration, n int, most time.Duration) time.Duration {
	this, next := base, base
	for k := 1; k < n; k++ {
		if this >= most {
			return most
		}
		this, next = next, min(this, most)+min(next, most) // two delays never overflow
	}
	return min(this, most)
}

// Delay is the wait after the nth failure: the ceiling with the dice's share of
// jitter, within [Min, Cap], or 0 where there is no waiting at all. The same
// dice give the same delay.
func (b Backoff) Delay(n int, dice uint64) time.Duration {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return 0
	}
	return b.bounded(b.jittered(b.ceiling(n), dice))
}

// Band is the shortest and the longest wait that jitter can make of the one
// after the nth failure.
func (b Backoff) Band(n int) (least, most time.Duration) {
	return b.Delay(n, 0), b.Delay(n, math.MaxUint64)
}

// bounded brings a delay between the least and the cap.
func (b Backoff) bounded(d time.Duration) time.Duration {
	return max(min(d, b.most()), b.least())
}
