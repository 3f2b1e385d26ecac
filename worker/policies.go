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
	own    *policy.Policy // of all queues that have none
	keeper lease.PolicyKeeper
	clock  func() time.Time
	kept   atomic.Pointer[map[string]keptPolicy]

	mu       sync.Mutex // held by refresh
	lookedAt time.Time
	readErr  error // of a text that is no policy
}

// keptPolicy is the policy of a queue, with the text that it was made of.
type keptPolicy struct {
	text   string
	policy *policy.Policy
}

// newPolicies uses the policy of a config, or those of the queues if it has none.
func newPolicies(c *Config) (*policies, error) {
	p := &policies{own: c.Policy, clock: c.Clock}
	if p.own != nil {
		return p, nil
	}
	p.keeper, _ = c.Source.(lease.PolicyKeeper)
	var err error
	p.own, err = policy.New(policy.Config{})
	return p, err
}

// of returns the policy of a queue.
func (p *policies) of(queue string) *policy.Policy {
	if kept := p.kept.Load(); kept != nil {
		if k, ok := (*kept)[queue]; ok {
			return k.policy
		}
	}
	return p.own
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
	kept := map[string]keptPolicy{}
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
func (p *policies) read(queue, text string) (keptPolicy, error) {
	before := keptPolicy{policy: p.own}
	if kept := p.kept.Load(); kept != nil {
		if k, ok := (*kept)[queue]; ok {
			before = k
		}
	}
	if before.text == text {
		return before, nil
	}
	document, err := policy.ParseDocument(text)
	if err != nil {
		return before, err
	}
	read, err := document.Policy()
	if err != nil {
		return before, err
	}
	return keptPolicy{text, read}, nil
}
