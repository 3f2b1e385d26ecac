package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// policyMaxAge limits the age of a worker's copy of the policies of its queues, at the moment when
// it receives something. While nothing comes it does not ask.
const policyMaxAge = 5 * time.Second

// policies holds the policies of a worker: that of its config, or else one for each queue. It is
// safe for concurrent use.
type policies struct {
	own    keptPolicy    // of all queues that have none
	routes []policy.Case // what the routes of the handler say, under every policy
	rules  func(*policy.Policy) policy.BreakerRules
	keeper lease.PolicyKeeper
	clock  func() time.Time
	kept   atomic.Pointer[map[string]*keptPolicy]

	mu       sync.Mutex // held by refresh
	lookedAt time.Time
	readErr  error // of a text that is no policy
}

// keptPolicy is the policy of a queue, with the text that it was made of and its breaker.
type keptPolicy struct {
	text    string
	policy  *policy.Policy
	breaker policy.BreakerRules
}

// newPolicies uses the policy of a config, or those of the queues if it has none, and under each
// what the routes of the handler say.
func newPolicies(c *Config, routes []policy.Case) (*policies, error) {
	p := &policies{clock: c.Clock, rules: c.breakerRules, routes: routes}
	own := c.Policy
	var err error
	if own == nil {
		p.keeper, _ = c.Source.(lease.PolicyKeeper)
		if own, err = policy.New(policy.Config{}); err != nil {
			return nil, err
		}
	}
	if own, err = own.Under(routes...); err != nil {
		return nil, err
	}
	p.own = keptPolicy{"", own, p.rules(own)}
	return p, nil
}

// breakerRules returns the breaker of a config, or that of the profile of a policy.
func (c *Config) breakerRules(of *policy.Policy) policy.BreakerRules {
	if c.Breaker != (policy.BreakerRules{}) {
		return c.Breaker
	}
	profile, err := policy.ProfileNamed(of.Config().Profile)
	if err != nil {
		return c.Breaker // a policy has no other profile
	}
	return profile.Breaker.Of(c.Concurrency, c.Awaited)
}

// of returns the policy of a queue.
func (p *policies) of(queue string) *policy.Policy { return p.keptOf(queue).policy }

// breakerOf returns the rules of the breakers of a queue.
func (p *policies) breakerOf(queue string) policy.BreakerRules { return p.keptOf(queue).breaker }

func (p *policies) keptOf(queue string) *keptPolicy {
	if kept := p.kept.Load(); kept != nil {
		if k, ok := (*kept)[queue]; ok {
			return k
		}
	}
	return &p.own
}

// Decide implements [policy.Decider] by the policy of the delivery's queue.
func (p *policies) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	return p.of(d.Queue).Decide(d, f, now)
}

// known reports whether the policies were read at least once.
func (p *policies) known() bool { return p.keeper == nil || p.kept.Load() != nil }

// refresh reads the policies of the queues, unless the copy is young enough. After an error the
// last copy stays; a text that is no policy is such an error.
func (p *policies) refresh(ctx context.Context) error {
	if p.keeper == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if p.kept.Load() != nil && now.Sub(p.lookedAt) < policyMaxAge {
		return p.readErr
	}
	texts, err := p.keeper.Policies(ctx)
	if err != nil {
		return err
	}
	p.readErr = nil
	kept := map[string]*keptPolicy{}
	for queue, text := range texts {
		k, bad := p.read(queue, text)
		if bad != nil {
			p.readErr = nixie.Errorf(nixie.CodeOf(bad), "policy of queue %s: %w", queue, bad)
		}
		kept[queue] = k
	}
	p.kept.Store(&kept)
	p.lookedAt = now
	return p.readErr
}

// read makes a policy of a text. If the text has not changed it returns the policy that is in use,
// which remembers its groups.
func (p *policies) read(queue, text string) (*keptPolicy, error) {
	before := p.keptOf(queue)
	if before.text == text {
		return before, nil
	}
	document, err := policy.ParseDocument(text)
	if err != nil {
		return before, err
	}
	read, err := document.Policy()
	if err == nil {
		read, err = read.Under(p.routes...)
	}
	if err != nil {
		return before, err
	}
	return &keptPolicy{text, read, p.rules(read)}, nil
}
