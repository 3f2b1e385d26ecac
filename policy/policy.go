package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// none switches a limit of a [Config] off.
const none = -1

// Decider turns a failure into the settlement of a delivery. A nil failure says
// that the handler succeeded. [Policy] is the usual one; another has to be pure
// and safe for concurrent use as well.
type Decider interface {
	Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement
}

var _ Decider = (*Policy)(nil)

// Config is what a policy can be told. A zero field means the value of the
// profile, −1 means none, other negative values are refused.
type Config struct {
	Profile       string        // set of values to start from; empty is [DefaultProfile]
	MaxAttempts   int           // executions in one life, the first included; 5
	MaxDeliveries int           // claims in one life, releases and crashes included; 3·MaxAttempts + 10
	MaxAge        time.Duration // since it was enqueued; no retry after that; none
	MaxRedrives   int           // a message that dies after so many redrives is quarantined; 3
	Backoff       Backoff       // how long a retry waits

	// OnExhausted is what becomes of a message that policy gives up on, for
	// whatever cause: Bury, Hold, Discard or Halt. Verbs that the handler asked
	// for are not touched by it.
	OnExhausted nixie.Verb

	Rules      []Rule    // what failures are; the first that matches counts
	NeverDead  []Matcher // failures that are retried until a hard cap ends it
	DeadAtOnce []Matcher // failures that are not retried
}

// Policy decides what becomes of deliveries. Make one with [New].
type Policy struct {
	config Config // complete: no zero fields
}

// New checks a config, fills it up from its profile and makes a policy of it.
// Errors are of [nixie.CodeInvalid] and name the option, its limit and the fix.
func New(c Config) (*Policy, error) {
	base, err := profile(c.Profile)
	if err != nil {
		return nil, err
	}
	c.Profile = base.Profile
	c.MaxAttempts = orElse(c.MaxAttempts, base.MaxAttempts)
	c.MaxDeliveries = orElse(c.MaxDeliveries, orElse(base.MaxDeliveries, defaultDeliveries(c.MaxAttempts)))
	c.MaxAge = orElse(c.MaxAge, base.MaxAge)
	c.MaxRedrives = orElse(c.MaxRedrives, base.MaxRedrives)
	c.Backoff = c.Backoff.or(base.Backoff)
	c.OnExhausted = orElse(c.OnExhausted, base.OnExhausted)
	c.Rules = slices.Clone(c.Rules)
	c.NeverDead = slices.Clone(c.NeverDead)
	c.DeadAtOnce = slices.Clone(c.DeadAtOnce)
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Policy{c}, nil
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
	if c.MaxAge < none || c.MaxAge > nixie.MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid, "max_age is %s: give a duration up to %s, or −1 for none", c.MaxAge, nixie.MaxDelay)
	}
	if c.MaxAttempts == none && c.MaxDeliveries == none && c.MaxAge == none {
		return nixie.Errorf(nixie.CodeInvalid, "max_attempts is none and nothing else ends the retries: set max_deliveries or max_age")
	}
	if len(c.NeverDead) > 0 && c.MaxDeliveries == none && c.MaxAge == none {
		return nixie.Errorf(nixie.CodeInvalid, "never_dead is set and nothing ends its retries: set max_deliveries or max_age")
	}
	if c.MaxDeliveries != none && c.MaxDeliveries < c.MaxAttempts {
		return nixie.Errorf(nixie.CodeInvalid, "max_deliveries is %d, less than max_attempts %d, which it would keep from ever being reached: raise it", c.MaxDeliveries, c.MaxAttempts)
	}
	switch c.OnExhausted {
	case nixie.Bury, nixie.Hold, nixie.Discard, nixie.Halt:
	default:
		return nixie.Errorf(nixie.CodeInvalid, "on_exhausted is %q: choose bury, hold, discard or halt", c.OnExhausted)
	}
	if err := c.Backoff.check(); err != nil {
		return err
	}
	return c.checkMatchers()
}

func (c *Config) checkMatchers() error {
	for i, r := range c.Rules {
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
	for _, m := range slices.Concat(c.NeverDead, c.DeadAtOnce) {
		if m.holds == nil {
			return nixie.Errorf(nixie.CodeInvalid, "never_dead or dead_at_once holds an empty matcher: make one with MatchError, MatchType, MatchText or their like")
		}
	}
	return nil
}

// Config returns the values that apply: no field is zero but empty lists.
func (p *Policy) Config() Config {
	c := p.config
	c.Rules = slices.Clone(c.Rules)
	c.NeverDead = slices.Clone(c.NeverDead)
	c.DeadAtOnce = slices.Clone(c.DeadAtOnce)
	return c
}

// maxCrashes always ends: a message that kills its holders is never retried
// without an end, whatever max_attempts says.
func (p *Policy) maxCrashes() int {
	if p.config.MaxAttempts == none {
		return DefaultMaxAttempts
	}
	return p.config.MaxAttempts
}

// Setting is a row for people: a name, its value and what it means.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

// Table lists every number and choice that applies, for nixie policy show.
func (p *Policy) Table() []Setting {
	c := p.config
	rows := []Setting{
		{"profile", c.Profile, "the set of values that the others start from"},
		{"max_attempts", count(c.MaxAttempts), "executions in one life, the first included"},
		{"max_deliveries", count(c.MaxDeliveries), "claims in one life, releases and crashes included"},
		{"max_crashes", count(p.maxCrashes()), "vanished holders in one life, then it is poison"},
		{"max_age", short(c.MaxAge), "no retry this long after it was enqueued"},
		{"max_redrives", count(c.MaxRedrives), "redrives, then a death means quarantine"},
		{"on_exhausted", string(c.OnExhausted), "what becomes of a message that is given up"},
		{"backoff", c.Backoff.String(), "wait before a retry, by failures in this life"},
	}
	rows = append(rows, limits()...)
	for i, r := range c.Rules {
		means := strings.TrimSpace(string(r.Class) + " " + string(r.Reason))
		rows = append(rows, Setting{"rule " + strconv.Itoa(i+1), r.When.String(), "such a failure is " + means})
	}
	for _, m := range c.NeverDead {
		rows = append(rows, Setting{"never_dead", m.String(), "such a failure is retried until a hard cap ends it"})
	}
	for _, m := range c.DeadAtOnce {
		rows = append(rows, Setting{"dead_at_once", m.String(), "such a failure is not retried"})
	}
	return rows
}

func count(n int) string {
	if n == none {
		return "none"
	}
	return strconv.Itoa(n)
}

// short writes a duration without zero parts at its end: 15m, not 15m0s.
func short(d time.Duration) string {
	if d == none {
		return "none"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
