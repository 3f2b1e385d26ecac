package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// inClaimForm describes the values that parseInClaim reads.
const inClaimForm = "none, or settings such as 'attempts=5 base=1s max-delay=30s max-time=2m'"

// parseInClaim reads the limits of retries within one claim: settings, each a name, "=" and a
// value.
//
//	attempts=5     runs, the first included; 2 to [MaxInClaim]; it must be given
//	base=1s        the wait after the first run; 0 is none; default 1 s, at most max-delay
//	max-delay=30s  the longest wait, from [MinSpacing] on; default 15 min
//	max-time=2m    since the first run began; default none
//
// Each further wait is twice as long, with jitter. The word none means no such retries. Errors have
// [nixie.CodeInvalid] and name the setting.
func parseInClaim(text string) (InClaim, error) {
	if text == "none" {
		return InClaim{MaxAttempts: 1}, nil
	}
	var i InClaim
	seen := map[string]bool{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		if seen[name] {
			return InClaim{}, nixie.Errorf(nixie.CodeInvalid, "%s is given twice: give it once", name)
		}
		seen[name] = true
		if err := i.set(name, value); err != nil {
			return InClaim{}, err
		}
	}
	if i.MaxAttempts == 0 {
		return InClaim{}, nixie.Errorf(nixie.CodeInvalid, "attempts is missing: give %s", inClaimForm)
	}
	longest := i.Backoff.Cap
	i.Backoff = i.Backoff.or(defaultBackoff())
	if !seen["base"] && longest > 0 {
		i.Backoff.Base = min(i.Backoff.Base, longest)
	}
	return i, i.Check()
}

// set reads one setting.
func (i *InClaim) set(name, value string) (err error) {
	into := map[string]*time.Duration{"base": &i.Backoff.Base, "max-delay": &i.Backoff.Cap, "max-time": &i.MaxTime}[name]
	switch {
	case name == "attempts":
		if i.MaxAttempts, err = strconv.Atoi(value); err != nil || i.MaxAttempts < 2 || i.MaxAttempts > MaxInClaim {
			return nixie.Errorf(nixie.CodeInvalid, "attempts is %q: give a number of runs from 2 to %d", value, MaxInClaim)
		}
	case into == nil:
		return nixie.Errorf(nixie.CodeInvalid, "it has no setting %q: choose attempts, base, max-delay or max-time", name)
	case name == "base" && value == "0":
		*into = none
	default:
		least := time.Nanosecond
		if name == "max-delay" {
			least = MinSpacing
		}
		if *into, err = filter.ParseDuration(value); err != nil || *into < least || *into > nixie.MaxDelay {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %q: give a duration from %s to %s, such as 30s", name, value, least,
				nixie.MaxDelay)
		}
	}
	return nil
}

// given reports whether a config has limits of its own.
func (i InClaim) given() bool { return i.MaxAttempts != 0 || i.MaxTime != 0 || i.Extensions != 0 }

// setInClaim reads the option of a document.
func setInClaim(c *Config, value string) (err error) {
	c.InClaim, err = parseInClaim(value)
	return err
}
