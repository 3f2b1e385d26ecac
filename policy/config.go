package policy

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// none switches a limit of a [Config] off.
const none = -1

// Config is what a policy can be told. A zero field means the value of the
// profile, −1 means none, other negative values are refused.
type Config struct {
	Profile       string // set of values to start from; empty is [DefaultProfile]
	MaxAttempts   int    // executions in one life, the first included; 5
	MaxRetries    int    // the same as MaxAttempts − 1, for those who count so; give one of the two
	MaxDeliveries int    // claims in one life, releases included and the two of each crash not; 3·MaxAttempts + 10

	// MaxCrashes is how many holders in a row may vanish before the message is poison;
	// 3. The last of them must have had it alone, so that nothing that ran beside a
	// killer is convicted; see [lease.GroupSize]. A vanished holder is no attempt and no
	// wait follows it. It cannot be none.
	MaxCrashes int

	MaxAge      time.Duration // since it was enqueued; no retry after that; none
	RetryBudget time.Duration // bound on the sum of all waits in one life; none
	MaxRedrives int           // a message that dies after so many redrives is quarantined; 3
	Backoff     Backoff       // how long a retry waits

	// OnExhausted is what becomes of a message that policy gives up on, for
	// whatever cause: Bury, Hold, Discard or Halt. Verbs that the handler asked
	// for are not touched by it. Who wants more wraps the policy in a [Decider].
	OnExhausted nixie.Verb

	// Lists of a config come before those of its profile, and both count.
	ClassRules []ClassRule // what failures are; the first that matches counts
	NeverDead  []Matcher   // failures that are retried until a hard cap ends it
	DeadAtOnce []Matcher   // failures that are not retried
	ReviewOn   []Matcher   // failures whose letter a person has to see first
	ExtendOn   []Matcher   // errors that are no failures but ask for more time
	ExactMatch bool        // all matchers look at the error itself and not at what it wraps

	Cases []Case // other values for some types and reasons
}

// over fills what is not set from an other config.
func (c Config) over(base Config) Config {
	c.Profile = orElse(c.Profile, base.Profile)
	c.MaxAttempts = orElse(c.MaxAttempts, base.MaxAttempts)
	c.MaxDeliveries = orElse(c.MaxDeliveries, base.MaxDeliveries)
	c.MaxCrashes = orElse(c.MaxCrashes, base.MaxCrashes)
	c.MaxAge = orElse(c.MaxAge, base.MaxAge)
	c.RetryBudget = orElse(c.RetryBudget, base.RetryBudget)
	c.MaxRedrives = orElse(c.MaxRedrives, base.MaxRedrives)
	c.Backoff = c.Backoff.or(base.Backoff)
	c.Backoff.Delays = slices.Clone(c.Backoff.Delays)
	c.OnExhausted = orElse(c.OnExhausted, base.OnExhausted)
	c.ClassRules = slices.Concat(c.ClassRules, base.ClassRules)
	c.NeverDead = slices.Concat(c.NeverDead, base.NeverDead)
	c.DeadAtOnce = slices.Concat(c.DeadAtOnce, base.DeadAtOnce)
	c.ReviewOn = slices.Concat(c.ReviewOn, base.ReviewOn)
	c.ExtendOn = slices.Concat(c.ExtendOn, base.ExtendOn)
	c.ExactMatch = c.ExactMatch || base.ExactMatch
	return c
}

// counted turns max_retries into max_attempts.
func (c Config) counted() (Config, error) {
	attempts := c.MaxRetries + 1
	switch {
	case c.MaxRetries == 0:
		return c, nil
	case c.MaxRetries == none:
		attempts = none
	case c.MaxRetries < none || c.MaxRetries >= MaxCount:
		return c, nixie.Errorf(nixie.CodeInvalid, "max_retries is %d: give a number from 1 to %d, or −1 for none", c.MaxRetries, MaxCount-1)
	}
	if c.MaxAttempts != 0 && c.MaxAttempts != attempts {
		return c, nixie.Errorf(nixie.CodeInvalid, "max_retries is %d and max_attempts %d: they count the same, the first execution apart or included; give one of the two", c.MaxRetries, c.MaxAttempts)
	}
	c.MaxAttempts, c.MaxRetries = attempts, 0
	return c, nil
}

// complete fills in what follows from other values, and checks the result.
func (c Config) complete() (Config, error) {
	c.MaxDeliveries = orElse(c.MaxDeliveries, defaultDeliveries(c.MaxAttempts))
	if err := c.check(); err != nil {
		return c, err
	}
	if c.ExactMatch {
		for _, list := range [...][]Matcher{c.NeverDead, c.DeadAtOnce, c.ReviewOn, c.ExtendOn} {
			for i := range list {
				list[i] = list[i].Exact()
			}
		}
		for i := range c.ClassRules {
			c.ClassRules[i].When = c.ClassRules[i].When.Exact()
		}
	}
	return c, nil
}

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// check looks at a config that is filled up.
func (c *Config) check() error {
	for _, n := range [...]struct {
		name  string
		value int
	}{{"max_attempts", c.MaxAttempts}, {"max_deliveries", c.MaxDeliveries}, {"max_redrives", c.MaxRedrives}} {
		if n.value < none || n.value > MaxCount {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %d: give a number from 1 to %d, or −1 for none", n.name, n.value, MaxCount)
		}
	}
	if c.MaxCrashes < 1 || c.MaxCrashes > MaxCount {
		return nixie.Errorf(nixie.CodeInvalid, "max_crashes is %d: give a number from 1 to %d, as what kills its holders must not go on for ever", c.MaxCrashes, MaxCount)
	}
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{{"max_age", c.MaxAge}, {"retry_budget", c.RetryBudget}} {
		if d.value < none || d.value > nixie.MaxDelay {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %s: give a duration up to %s, or −1 for none", d.name, d.value, nixie.MaxDelay)
		}
	}
	if err := c.checkEnds(); err != nil {
		return err
	}
	switch c.OnExhausted {
	case nixie.Bury, nixie.Hold, nixie.Discard, nixie.Halt:
	default:
		return nixie.Errorf(nixie.CodeInvalid, "on_exhausted is %q: choose bury, hold, discard or halt", c.OnExhausted)
	}
	if err := c.Backoff.check(); err != nil {
		return err
	}
	if err := c.Backoff.checkBase(); err != nil {
		return err
	}
	return c.checkMatchers()
}

// checkEnds makes sure that no life goes on for ever.
func (c *Config) checkEnds() error {
	if c.MaxAttempts == none && c.MaxDeliveries == none && c.MaxAge == none {
		return nixie.Errorf(nixie.CodeInvalid, "max_attempts is none and nothing else ends the retries: set max_deliveries or max_age")
	}
	for _, list := range [...]struct {
		name     string
		matchers []Matcher
	}{{"never_dead", c.NeverDead}, {"extend_on", c.ExtendOn}} {
		if len(list.matchers) > 0 && c.MaxDeliveries == none && c.MaxAge == none {
			return nixie.Errorf(nixie.CodeInvalid, "%s is set and nothing ends its retries: set max_deliveries or max_age", list.name)
		}
	}
	if c.MaxDeliveries != none && c.MaxDeliveries < c.MaxAttempts {
		return nixie.Errorf(nixie.CodeInvalid, "max_deliveries is %d, less than max_attempts %d, which it would keep from ever being reached: raise it", c.MaxDeliveries, c.MaxAttempts)
	}
	if c.RetryBudget != none && (c.MaxAttempts == none || c.MaxAttempts > MaxBudgeted) {
		return nixie.Errorf(nixie.CodeInvalid, "retry_budget is set and max_attempts %s: give a max_attempts from 1 to %d beside it", count(c.MaxAttempts), MaxBudgeted)
	}
	return nil
}

func (c *Config) checkMatchers() error {
	for i, r := range c.ClassRules {
		if r.When.holds == nil {
			return nixie.Errorf(nixie.CodeInvalid, "rule %d has no matcher: make one with MatchError, MatchType, MatchText or their like", i+1)
		}
		if r.Class == "" && r.Reason == "" {
			return nixie.Errorf(nixie.CodeInvalid, "rule %d (%s) names neither class nor reason: name one", i+1, r.When)
		}
		if r.Class != "" && !knownClass(r.Class) {
			return nixie.Errorf(nixie.CodeInvalid, "rule %d (%s) has class %q: choose transient, permanent or unknown", i+1, r.When, r.Class)
		}
		if r.Reason != "" && !knownReason(r.Reason) {
			return nixie.Errorf(nixie.CodeInvalid, "rule %d (%s) has reason %q: choose one of the list that nixie policy show prints", i+1, r.When, r.Reason)
		}
	}
	for _, m := range slices.Concat(c.NeverDead, c.DeadAtOnce, c.ReviewOn, c.ExtendOn) {
		if m.holds == nil {
			return nixie.Errorf(nixie.CodeInvalid, "never_dead, dead_at_once, review_on or extend_on holds an empty matcher: make one with MatchError, MatchType, MatchText or their like")
		}
	}
	return nil
}

// poisonous reports whether a message is to be given up because its holders vanished:
// so many in a row, the last one with nothing else in hand. A source that cannot say
// so is believed once there were more than it takes for any suspect to stand alone.
func (c *Config) poisonous(d *nixie.Delivery) bool {
	return d.Crashes >= c.MaxCrashes && (d.AbandonedAlone || d.Crashes >= c.MaxCrashes+sharedCrashes)
}

// claimed is how many claims count: those of a vanished holder, and of who judged
// that, have a budget of their own.
func claimed(d *nixie.Delivery) int { return max(d.Deliveries-claimsOfCrash*d.Crashes, 0) }

// outOfAttempts reports whether a delivery must not be executed once more. Which
// failures are never dead is seen when there is one.
func (c *Config) outOfAttempts(d *nixie.Delivery) bool {
	return c.MaxAttempts != none && len(c.NeverDead) == 0 && d.Attempts > c.MaxAttempts
}

func (c *Config) aged(d *nixie.Delivery, now time.Time) bool {
	return c.MaxAge != none && !d.EnqueuedAt.IsZero() && now.Sub(d.EnqueuedAt) >= c.MaxAge
}
