package policy

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Formula computes the wait from the number n of failures in this generation. The first failure
// has n = 1.
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

// Backoff computes how long to wait before a retry, in four steps:
//
//  1. the formula
//  2. at most Cap
//  3. jitter
//  4. not less than Min and not more than Cap
//
// So no jitter exceeds the cap. Every step saturates: the wait is never negative and never
// beyond [nixie.MaxDelay]. Zero fields mean the defaults. A Backoff never changes; the caller
// must not change Delays or what Func reads either.
type Backoff struct {
	Formula Formula       // empty is exponential
	Base    time.Duration // 0 is 1 s; −1 is no waiting at all, with every formula; list and custom ignore other values
	Factor  float64       // exponential: 1…[MaxFactor]; 0 is 2
	Step    time.Duration // linear: 0 is Base
	Delays  []time.Duration
	Func    func(n int) time.Duration // has to be pure; if it panics the wait is Cap
	Cap     time.Duration             // 0 is 15 min; −1 is none, so that [nixie.MaxDelay] is the limit
	Min     time.Duration             // 0 is [MinSpacing]; the policy refuses less

	Jitter   Jitter        // empty is equal
	Fraction float64       // proportional: the wait grows or shrinks by up to this part; above 0 up to 1; 0 is 0.3
	From, To time.Duration // additive: the wait grows by at least From and by less than To
}

// or fills zero fields. Delays and Func belong to their formula, so another formula does not
// inherit them.
func (b Backoff) or(otherwise Backoff) Backoff {
	b.Formula = cmp.Or(b.Formula, otherwise.Formula)
	b.Base = cmp.Or(b.Base, otherwise.Base)
	b.Factor = cmp.Or(b.Factor, otherwise.Factor)
	b.Step = cmp.Or(b.Step, otherwise.Step)
	b.Cap = cmp.Or(b.Cap, otherwise.Cap)
	b.Min = cmp.Or(b.Min, otherwise.Min)
	b.Jitter = cmp.Or(b.Jitter, otherwise.Jitter)
	b.Fraction = cmp.Or(b.Fraction, otherwise.Fraction)
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

// check validates a backoff whose zero fields are filled.
func (b Backoff) check() error {
	if !slices.Contains(Formulas(), b.Formula) {
		return nixie.Errorf(nixie.CodeInvalid,
			"backoff formula is %q: choose exponential, linear, fixed, fibonacci, list or custom", b.Formula)
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
		return nixie.Errorf(nixie.CodeInvalid,
			"backoff cap is %s: give a duration from %s to %s, or −1 for none", b.Cap, MinSpacing, nixie.MaxDelay)
	}
	if b.Min != 0 && (b.Min < MinSpacing || b.Min > b.longest()) {
		return nixie.Errorf(nixie.CodeInvalid, "backoff min is %s: give a duration from %s to the cap, %s", b.Min, MinSpacing, b.longest())
	}
	if b.Formula == Custom && b.Func == nil {
		return nixie.Errorf(nixie.CodeInvalid, "backoff formula is custom without a function: set Func")
	}
	if err := b.checkDelays(); err != nil {
		return err
	}
	return b.checkJitter()
}

// checkBase refuses a first wait that the cap would cut: such a config is a mistake.
func (b Backoff) checkBase() error {
	if b.Formula == List || b.Formula == Custom || b.Base <= b.longest() {
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid,
		"backoff base is %s, which is more than the cap, %s: raise the cap, as in 'base=%s cap=%s'",
		b.Base, short(b.Cap), short(b.Base), short(min(4*b.Base, nixie.MaxDelay)))
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

// longest returns the cap that applies.
func (b Backoff) longest() time.Duration {
	if b.Cap < 0 {
		return nixie.MaxDelay
	}
	return b.Cap
}

// shortest returns the minimum that applies.
func (b Backoff) shortest() time.Duration { return max(b.Min, MinSpacing) }

// Ceiling returns the delay after the nth failure before jitter, from 0 to the cap. An n below 1
// counts as 1.
func (b Backoff) Ceiling(n int) time.Duration {
	return b.or(defaultBackoff()).ceiling(n)
}

// ceiling is Ceiling for a backoff whose zero fields are filled.
func (b Backoff) ceiling(n int) time.Duration {
	if b.Base < 0 {
		return 0
	}
	return min(max(b.uncapped(max(n, 1)), 0), b.longest())
}

// uncapped applies the formula. The result may be beyond the cap.
func (b Backoff) uncapped(n int) time.Duration {
	switch b.Formula {
	case Fixed:
		return b.Base
	case Linear:
		return sumUpTo(b.Base, cmp.Or(b.Step, b.Base), uint64(n)-1, b.longest())
	case Fibonacci:
		return fibonacci(b.Base, n, b.longest())
	case List:
		switch {
		case n <= len(b.Delays):
			return b.Delays[n-1]
		case b.Cap < 0 && len(b.Delays) > 0:
			return b.Delays[len(b.Delays)-1]
		}
		return b.longest()
	case Custom:
		return b.callFunc(n)
	}
	// A float saturates at infinity; an integer would overflow to a negative number.
	grown := float64(b.Base) * math.Pow(b.Factor, float64(n-1))
	if grown < float64(b.longest()) {
		return time.Duration(grown)
	}
	return b.longest()
}

// callFunc calls Func, which may panic.
func (b Backoff) callFunc(n int) (d time.Duration) {
	defer func() {
		if recover() != nil {
			d = b.longest()
		}
	}()
	return b.Func(n)
}

// sumUpTo returns base + step·times, at most most.
func sumUpTo(base, step time.Duration, times uint64, most time.Duration) time.Duration {
	over, added := bits.Mul64(uint64(step), times)
	if over > 0 || base >= most || added >= uint64(most-base) {
		return most
	}
	return base + time.Duration(added)
}

// fibonacci returns base times the nth of 1, 1, 2, 3, 5 …, at most most.
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

// Delay returns the wait after the nth failure: the ceiling with jitter, within [Min, Cap], or 0
// if Base is −1. Jitter takes its share from random, a number of 64 random bits: the same number
// gives the same delay.
func (b Backoff) Delay(n int, random uint64) time.Duration {
	b = b.or(defaultBackoff())
	if b.Base < 0 {
		return 0
	}
	return b.bounded(b.jittered(b.ceiling(n), random))
}

// Band returns the shortest and the longest wait after the nth failure that jitter can produce.
func (b Backoff) Band(n int) (least, most time.Duration) {
	return b.Delay(n, 0), b.Delay(n, math.MaxUint64)
}

// bounded limits a delay to the range from the minimum to the cap.
func (b Backoff) bounded(d time.Duration) time.Duration {
	return max(min(d, b.longest()), b.shortest())
}
