package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// none switches a limit of a [Config] off.
const none = -1

// Config holds the values of a policy. A zero field means the value of the profile, and −1 means
// none. [New] refuses other negative values.
type Config struct {
	Profile       string // set of values to start from; empty is [DefaultProfile]
	MaxAttempts   int    // executions in one generation, the first included; 5
	MaxRetries    int    // MaxAttempts − 1, for callers that count retries; give one of the two
	MaxDeliveries int    // claims in one generation, with releases, without the two of each crash; 3·MaxAttempts + 10

	// MaxCrashes limits the holders that vanish in a row: then the message is poison; 3. The
	// last of them must have held it alone, so that no innocent message dies with a killer; see
	// [lease.GroupSize]. A vanished holder uses no attempt, and the retry after it does not
	// wait. It cannot be none.
	MaxCrashes int

	// MinAge keeps a message whose failure time may heal, see [Heals]: it is not given up before
	// its first failure of this generation is so long ago. After MaxAttempts the waits are an
	// eighth of it at least, so it runs eight times more at most. It is 15 min, 2 min with Awaited,
	// and at most MaxAge. It is none where MaxAttempts, MaxRetries or RetryBudget is given.
	MinAge  time.Duration
	Awaited bool // a person waits for the end of the work, as in nixie run; cases have it from here

	MaxAge      time.Duration // no retry this long after the message was enqueued, or redriven last; none
	RetryBudget time.Duration // bound on the sum of all waits in one generation; none
	MaxRedrives int           // a message that dies after this many redrives is quarantined; 3
	Backoff     Backoff       // computes the wait before a retry

	// InClaim limits further runs under one claim, before a failure counts as an attempt. Commands
	// of nixie keep to it; a handler does with worker.RetryInClaim. Without Extensions those of the
	// profile hold.
	InClaim InClaim

	// OnExhausted is the verb for a message that the policy gives up on, for any cause: Bury,
	// Hold, Discard or Halt. It does not change verbs that the handler asked for. A caller that
	// needs more wraps the policy in a [Decider].
	OnExhausted nixie.Verb

	// Lists of a config come before those of its profile, and both count.
	ClassRules []ClassRule // give class and reason; the first that matches counts
	NeverDead  []Matcher   // failures to retry until a hard cap ends the retries
	DeadAtOnce []Matcher   // failures not to retry
	ReviewOn   []Matcher   // failures whose letter a person has to review
	ExtendOn   []Matcher   // errors that are no failures but ask for more time
	GroupAs    []GroupRule // name groups by hand; the first that matches counts; at most 20, and none in cases
	ExactMatch bool        // all matchers look at the error itself and not at errors that it wraps

	Cases []Case // other values for some types and reasons

	ownMinAge bool // MinAge was given, and is no default
}

// over fills zero fields from base, and puts its own lists before those of base.
func (c Config) over(base Config) Config {
	c.Profile = cmp.Or(c.Profile, base.Profile)
	switch {
	case c.MinAge != 0:
		c.ownMinAge = true
	case c.MaxAttempts != 0 || c.RetryBudget != 0:
		c.MinAge = none // who names a limit means it
	default:
		c.MinAge, c.ownMinAge = base.MinAge, base.ownMinAge
	}
	c.Awaited = c.Awaited || base.Awaited
	c.MaxAttempts = cmp.Or(c.MaxAttempts, base.MaxAttempts)
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, base.MaxDeliveries)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, base.MaxCrashes)
	c.MaxAge = cmp.Or(c.MaxAge, base.MaxAge)
	c.RetryBudget = cmp.Or(c.RetryBudget, base.RetryBudget)
	c.MaxRedrives = cmp.Or(c.MaxRedrives, base.MaxRedrives)
	c.Backoff = c.Backoff.or(base.Backoff)
	c.Backoff.Delays = slices.Clone(c.Backoff.Delays)
	c.OnExhausted = cmp.Or(c.OnExhausted, base.OnExhausted)
	c.ClassRules = slices.Concat(c.ClassRules, base.ClassRules)
	c.NeverDead = slices.Concat(c.NeverDead, base.NeverDead)
	c.DeadAtOnce = slices.Concat(c.DeadAtOnce, base.DeadAtOnce)
	c.ReviewOn = slices.Concat(c.ReviewOn, base.ReviewOn)
	c.ExtendOn = slices.Concat(c.ExtendOn, base.ExtendOn)
	c.GroupAs = slices.Concat(c.GroupAs, base.GroupAs)
	c.ExactMatch = c.ExactMatch || base.ExactMatch
	return c
}

// counted replaces max_retries by max_attempts.
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
		return c, nixie.Errorf(nixie.CodeInvalid,
			"max_retries is %d and max_attempts %d: max_attempts is max_retries + 1, give one of the two",
			c.MaxRetries, c.MaxAttempts)
	}
	c.MaxAttempts, c.MaxRetries = attempts, 0
	return c, nil
}

// complete fills in the values that follow from others, and checks the result.
func (c Config) complete() (Config, error) {
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, defaultDeliveries(c.MaxAttempts))
	if c.MaxAge > 0 && !c.ownMinAge {
		c.MinAge = min(c.MinAge, c.MaxAge)
	}
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

// check validates a config whose zero fields are filled.
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
		return nixie.Errorf(nixie.CodeInvalid,
			"max_crashes is %d: give a number from 1 to %d, as a message that kills its holders must not run for ever",
			c.MaxCrashes, MaxCount)
	}
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{{"min_age", c.MinAge}, {"max_age", c.MaxAge}, {"retry_budget", c.RetryBudget}} {
		if d.value < none || d.value > nixie.MaxDelay {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %s: give a duration up to %s, or −1 for none", d.name, d.value, nixie.MaxDelay)
		}
	}
	if c.MaxAge > 0 && c.MinAge > c.MaxAge {
		return nixie.Errorf(nixie.CodeInvalid, "min_age is %s, more than max_age %s, after which no message is retried: lower it",
			short(c.MinAge), short(c.MaxAge))
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
	if err := c.InClaim.Check(); err != nil {
		return err
	}
	if err := c.checkGroupAs(); err != nil {
		return err
	}
	return c.checkMatchers()
}

// checkEnds makes sure that no message is retried for ever.
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
		return nixie.Errorf(nixie.CodeInvalid,
			"max_deliveries is %d, less than max_attempts %d, which no message could then reach: raise it", c.MaxDeliveries, c.MaxAttempts)
	}
	if c.RetryBudget != none && (c.MaxAttempts == none || c.MaxAttempts > MaxBudgeted) {
		return nixie.Errorf(nixie.CodeInvalid,
			"retry_budget is set and max_attempts %s: give a max_attempts from 1 to %d with it", count(c.MaxAttempts), MaxBudgeted)
	}
	return nil
}

func (c *Config) checkMatchers() error {
	for i, r := range c.ClassRules {
		if r.When.holds == nil {
			return nixie.Errorf(nixie.CodeInvalid,
				"rule %d has no matcher: make one with MatchError, MatchType, MatchText or their like", i+1)
		}
		if r.Class == "" && r.Reason == "" {
			return nixie.Errorf(nixie.CodeInvalid, "rule %d (%s) names neither class nor reason: name one", i+1, r.When)
		}
		if r.Class != "" && !knownClass(r.Class) {
			return nixie.Errorf(nixie.CodeInvalid,
				"rule %d (%s) has class %q: choose transient, permanent or unknown", i+1, r.When, r.Class)
		}
		if r.Reason != "" && !knownReason(r.Reason) {
			return nixie.Errorf(nixie.CodeInvalid,
				"rule %d (%s) has reason %q: choose one of the list that nixie policy show prints", i+1, r.When, r.Reason)
		}
	}
	for _, m := range slices.Concat(c.NeverDead, c.DeadAtOnce, c.ReviewOn, c.ExtendOn) {
		if m.holds == nil {
			return nixie.Errorf(nixie.CodeInvalid,
				"never_dead, dead_at_once, review_on or extend_on holds an empty matcher: "+
					"make one with MatchError, MatchType, MatchText or their like")
		}
	}
	return nil
}

// poisonous reports whether to give a message up because its holders vanished: MaxCrashes in a
// row, and the last one held nothing else. A source that cannot tell the latter needs more
// crashes: enough for every suspect to have run alone.
func (c *Config) poisonous(d *nixie.Delivery) bool {
	return d.Crashes >= c.MaxCrashes && (d.AbandonedAlone || d.Crashes >= c.MaxCrashes+sharedCrashes)
}

// countedClaims returns the claims that count for max_deliveries. Those that cost nothing do not,
// nor two of each crash: the one that vanished and the one that judged it, which have a budget of
// their own.
func countedClaims(d *nixie.Delivery) int {
	return max(d.Deliveries-d.Patience.Free-claimsOfCrash*d.Crashes, 0)
}

// outOfAttempts reports whether a delivery must not run once more. With never_dead it may run:
// only its failure shows whether a matcher holds. With min_age only the failure shows whether it
// is over.
func (c *Config) outOfAttempts(d *nixie.Delivery) bool {
	most := c.MaxAttempts
	if c.MinAge != none {
		most += lateAttempts
	}
	return c.MaxAttempts != none && len(c.NeverDead) == 0 && d.Attempts > most
}

func (c *Config) aged(d *nixie.Delivery, now time.Time) bool {
	since := d.Since()
	return c.MaxAge != none && !since.IsZero() && now.Sub(since) >= c.MaxAge
}
