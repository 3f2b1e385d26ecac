package policy

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// InClaim limits the retries within one claim: the worker runs the handler again while it holds the
// delivery. A crash loses their count; the retries of a [Policy] survive one. The zero value never
// retries.
type InClaim struct {
	MaxAttempts int           // runs, the first included; below 2 is no retry
	MaxTime     time.Duration // since the first run began; 0 is none
	Backoff     Backoff       // how long to wait between runs; its cap is the longest wait
	Extensions  int           // more runs for errors that only ask for more time, see [Policy.Extends]; 0 is none
}

// Next reports whether a handler that has failed n times runs again, and after which wait. Elapsed
// is the time since its first run began. If the wait would not end before MaxTime, it returns
// false. The jitter comes from the delivery, so a replay waits as long.
func (i InClaim) Next(d *nixie.Delivery, n int, elapsed time.Duration) (wait time.Duration, again bool) {
	if n >= i.MaxAttempts {
		return 0, false
	}
	wait = i.Backoff.Delay(n, randomFor(d.ID, d.Generation, d.Attempts<<16+n))
	if i.MaxTime > 0 && elapsed+wait >= i.MaxTime {
		return 0, false
	}
	return wait, true
}

// Check validates the limits. The zero value is valid.
func (i InClaim) Check() error {
	switch {
	case i.MaxAttempts < 0 || i.MaxAttempts > MaxInClaim:
		return nixie.Errorf(nixie.CodeInvalid,
			"retries in one claim: max_attempts is %d: give a number from 0 to %d", i.MaxAttempts, MaxInClaim)
	case i.Extensions < 0 || i.Extensions > MaxInClaim:
		return nixie.Errorf(nixie.CodeInvalid,
			"retries in one claim: extensions is %d: give a number from 0 to %d", i.Extensions, MaxInClaim)
	case i.MaxTime < 0 || i.MaxTime > nixie.MaxDelay:
		return nixie.Errorf(nixie.CodeInvalid,
			"retries in one claim: max_time is %s: give a duration up to %s, or 0 for none", i.MaxTime, nixie.MaxDelay)
	}
	return i.Backoff.or(defaultBackoff()).check()
}

// String describes the limits in words.
func (i InClaim) String() string {
	var words []string
	if i.MaxAttempts > 1 {
		runs := strconv.Itoa(i.MaxAttempts) + " runs"
		if i.MaxTime > 0 {
			runs += " within " + short(i.MaxTime)
		}
		words = append(words, runs, i.Backoff.String())
	}
	if i.Extensions > 0 {
		words = append(words, strconv.Itoa(i.Extensions)+" extensions")
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}
