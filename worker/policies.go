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

// lookEvery is how old what a worker knows of the policies of its queues may be when
// it receives something. While nothing comes it does not ask.
const lookEvery = 5 * time.Second

// policies are those that a worker goes by: the one of its config, or else that of
// each queue. It is safe for concurrent use.
type policies struct {
	own   *policy.Policy // of all queues that have none
	from  lease.PolicyKeeper
	clock func() time.Time
	kept  atomic.Pointer[map[string]keptPolicy]

	mu     sync.Mutex // held by who looks
	looked time.Time
	unread error // what could not be read of what was found
}

// keptPolicy is the policy of a queue, and the text that it was made of.
type keptPolicy struct {
	text   string
	policy *policy.Policy
}

// newPolicies takes the policy of a config, or where it has none that of the queues.
func newPolicies(c *Config) (*policies, error) {
	p := &policies{own: c.Policy, clock: c.Clock}
	if p.own != nil {
		return p, nil
	}
	p.from, _ = c.Source.(lease.PolicyKeeper)
	var err error
	p.own, err = policy.New(policy.Config{})
	return p, err
}

// of is the policy of a queue.
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

// known reports whether the policies were looked up at all.
func (p *policies) known() bool { return p.from == nil || p.kept.Load() != nil }

// look asks for the policies of the queues, unless that was done just now. After an
// error those hold that did before; a policy that cannot be read is such an error.
func (p *policies) look(ctx context.Context) error {
	if p.from == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if p.kept.Load() != nil && now.Sub(p.looked) < lookEvery {
		return p.unread
	}
	texts, err := p.from.Policies(ctx)
	if err != nil {
		return err
	}
	p.unread = nil
	kept := map[string]keptPolicy{}
	for queue, text := range texts {
		k, bad := p.read(queue, text)
		if bad != nil {
			p.unread = nixie.Errorf(nixie.CodeOf(bad), "policy of queue %s: %w", queue, bad)
		}
		kept[queue] = k
	}
	p.kept.Store(&kept)
	p.looked = now
	return p.unread
}

// read makes a policy of a text. What is as it was stays, with the groups that it knows.
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
