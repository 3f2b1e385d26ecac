package policy

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Decider decides about a delivery: it makes the settlement from the failure. A nil failure means
// that the handler succeeded. [Policy] is the usual one. Every other has to be pure and safe for
// concurrent use too.
type Decider interface {
	Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement
}

var _ Decider = (*Policy)(nil)

// Policy decides about deliveries. Make one with [New].
type Policy struct {
	given  Config // as New got it
	config Config // complete: it has the values that follow from others
	notice Config // for notices of deaths, without a case of their own
	cases  map[caseKey]*Config
	byType map[string][]*Config // the values of all cases by message type
	groups *groups
}

// New checks a config, fills zero fields from its profile and makes a policy of it. Errors have
// [nixie.CodeInvalid] and name the option, its limit and the fix.
func New(c Config) (*Policy, error) {
	profile, err := ProfileNamed(c.Profile)
	if err != nil {
		return nil, err
	}
	if c, err = c.counted(); err != nil {
		return nil, err
	}
	c.Profile = profile.Name
	base := c.over(profile.of(c.Awaited))
	base.Cases = slices.Clone(c.Cases)
	extensions := cmp.Or(base.InClaim.Extensions, profile.InClaim.Extensions)
	if !base.InClaim.given() {
		base.InClaim = profile.InClaim
	}
	base.InClaim.Extensions = extensions
	p := &Policy{given: c.clone(), groups: &groups{seed: maphash.MakeSeed()}}
	if p.config, err = base.complete(); err != nil {
		return nil, err
	}
	p.notice = p.config.uncapped()
	if err := p.addCases(base, c.Cases); err != nil {
		return nil, err
	}
	return p, nil
}

// Under returns the policy with more cases, as a program knows them. What a case of the policy says
// of the same type and reason goes before: who sets the policy of a queue has the last word. The
// result remembers groups of its own. Without cases it is the policy itself.
func (p *Policy) Under(cases ...Case) (*Policy, error) {
	if len(cases) == 0 {
		return p, nil
	}
	c := p.given.clone()
	for _, more := range cases {
		i := slices.IndexFunc(c.Cases, func(own Case) bool { return own.Type == more.Type && own.Reason == more.Reason })
		switch {
		case i < 0:
			c.Cases = append(c.Cases, more)
		case c.Cases[i].Config.Profile == "": // a profile has all values
			own, err := c.Cases[i].Config.counted()
			if err != nil {
				return nil, err
			}
			c.Cases[i].Config = own.over(more.Config)
		}
	}
	return New(c)
}

// Config returns the values that apply without a case, with all fields filled in. MaxRetries is
// always 0, because MaxAttempts has its value.
func (p *Policy) Config() Config { return p.config.clone() }

// ConfigFor returns the values that apply to the failures of a reason of messages of a type.
func (p *Policy) ConfigFor(messageType string, reason nixie.Reason) Config {
	return p.of(messageType, reason).clone()
}

func (c *Config) clone() Config {
	own := *c
	own.Backoff.Delays = slices.Clone(own.Backoff.Delays)
	own.ClassRules = slices.Clone(own.ClassRules)
	own.NeverDead = slices.Clone(own.NeverDead)
	own.DeadAtOnce = slices.Clone(own.DeadAtOnce)
	own.ReviewOn = slices.Clone(own.ReviewOn)
	own.ExtendOn = slices.Clone(own.ExtendOn)
	own.GroupAs = slices.Clone(own.GroupAs)
	own.Cases = slices.Clone(own.Cases)
	return own
}
