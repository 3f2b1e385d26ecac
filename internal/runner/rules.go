package runner

import (
	"context"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// rules are what a runner does about the items of a queue: its flags over the policy
// that is kept with the queue.
type rules struct {
	kept    string // with the queue
	policy  *policy.Policy
	door    policy.Document // what may be run at all
	attempt nixie.Handler   // the command, with what the profile retries in place
}

// rulesOf are the rules of a queue.
func (r *Runner) rulesOf(queue string) *rules {
	if all := r.ruled.Load(); all != nil && (*all)[queue] != nil {
		return (*all)[queue]
	}
	return r.own
}

func (r *Runner) policyOf(queue string) *policy.Policy { return r.rulesOf(queue).policy }

// makeRules makes rules of what is kept with a queue.
func (r *Runner) makeRules(kept string) (*rules, error) {
	base, err := policy.ParseDocument(kept)
	if err != nil {
		return nil, err
	}
	said := r.c.Policy.Over(base)
	if r.exhausted != "" {
		if said, err = said.With("on-exhausted", string(r.exhausted)); err != nil {
			return nil, err
		}
	}
	made := &rules{kept: kept, door: said, attempt: nixie.HandlerFunc(r.attempt)}
	if made.policy, err = said.Policy(); err != nil {
		return nil, err
	}
	if r.c.OnFailure == KeepOn || len(r.custom.args) > 0 {
		if made.door, err = endless(said, made.policy.Config().MaxDeliveries); err != nil {
			return nil, err
		}
	}
	// What the profile says of taken dedupe keys is for producers: that a job knows its
	// items is how it goes on.
	profile, err := policy.ProfileNamed(made.policy.Config().Profile)
	if err != nil || profile.InPlace.MaxAttempts < 2 && profile.InPlace.Extensions == 0 {
		return made, err
	}
	made.attempt, err = worker.RetryInPlace(made.attempt, made.policy, profile.InPlace, r.c.Clock)
	return made, err
}

// endless is what may be run by modes that can go on past max_attempts: they leave the
// end to max_deliveries.
func endless(said policy.Document, maxDeliveries int) (door policy.Document, err error) {
	if door, err = said.With("max-attempts", "none"); err != nil {
		return door, err
	}
	if door, err = door.With("max-deliveries", strconv.Itoa(maxDeliveries)); err != nil {
		return door, err
	}
	door, err = door.With("retry-budget")
	if err != nil {
		return door, err
	}
	_, err = door.Policy()
	return door, err
}

// Policies implements [lease.PolicyKeeper]: what may be run at all of each queue. Of one
// whose policy does not go with the flags the last rules hold.
func (s *source) Policies(ctx context.Context) (map[string]string, error) {
	kept, err := s.Source.Policies(ctx)
	if err != nil {
		return nil, err
	}
	all, doors := map[string]*rules{}, map[string]string{}
	for _, queue := range s.r.c.Queues {
		of := s.r.rulesOf(queue)
		if text := kept[queue]; text != of.kept {
			made, bad := s.r.makeRules(text)
			if bad != nil {
				s.r.c.Warn("policy of %s %s: %v; what held before goes on", s.r.noun(), queue, bad)
				made = &rules{kept: text, policy: of.policy, door: of.door, attempt: of.attempt}
			}
			of = made
		}
		all[queue], doors[queue] = of, of.door.String()
	}
	s.r.ruled.Store(&all)
	return doors, nil
}
