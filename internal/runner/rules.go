package runner

import (
	"context"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// rules combine the runner's flags with the policy that is stored with a queue; the flags win.
type rules struct {
	stored  string // the policy of the queue
	policy  *policy.Policy
	admits  policy.Document // decides which messages may run at all
	attempt nixie.Handler   // the command, with its retries inside an attempt
}

// rulesOf returns the rules of a queue.
func (r *Runner) rulesOf(queue string) *rules {
	if all := r.byQueue.Load(); all != nil && (*all)[queue] != nil {
		return (*all)[queue]
	}
	return r.defaults
}

func (r *Runner) policyOf(queue string) *policy.Policy { return r.rulesOf(queue).policy }

// makeRules makes the rules of a queue from its stored policy.
func (r *Runner) makeRules(stored string) (*rules, error) {
	base, err := policy.ParseDocument(stored)
	if err != nil {
		return nil, err
	}
	merged := r.c.Policy.Over(base)
	if r.exhausted != "" {
		if merged, err = merged.With("on-exhausted", string(r.exhausted)); err != nil {
			return nil, err
		}
	}
	made := &rules{stored: stored, admits: merged, attempt: nixie.HandlerFunc(r.attempt)}
	config, err := merged.Config()
	if err != nil {
		return nil, err
	}
	config.Awaited = len(r.c.Queues) == 0 || r.c.Job != ""
	if made.policy, err = policy.New(config); err != nil {
		return nil, err
	}
	if r.c.OnFailure == KeepOn || len(r.custom.args) > 0 {
		if made.admits, err = withoutAttemptLimit(merged, made.policy.Config().MaxDeliveries); err != nil {
			return nil, err
		}
	}
	// The profile's answer to taken dedupe keys is for producers and does not apply: a job resumes
	// because it has its items already.
	limits := made.policy.Config().InClaim
	if limits.MaxAttempts < 2 && limits.Extensions == 0 {
		return made, nil
	}
	made.attempt, err = worker.RetryInClaim(made.attempt, made.policy, limits, r.c.Clock)
	return made, err
}

// withoutAttemptLimit returns the admission of modes that retry past max_attempts: only
// max_deliveries ends them.
func withoutAttemptLimit(doc policy.Document, maxDeliveries int) (admits policy.Document, err error) {
	if admits, err = doc.With("max-attempts", "none"); err != nil {
		return admits, err
	}
	if admits, err = admits.With("max-deliveries", strconv.Itoa(maxDeliveries)); err != nil {
		return admits, err
	}
	admits, err = admits.With("retry-budget")
	if err != nil {
		return admits, err
	}
	_, err = admits.Policy()
	return admits, err
}

// Policies implements [lease.PolicyKeeper]: it returns the admission of each queue. If the new
// policy of a queue does not fit the flags, the rules before stay.
func (s *source) Policies(ctx context.Context) (map[string]string, error) {
	kept, err := s.Source.Policies(ctx)
	if err != nil {
		return nil, err
	}
	all, doors := map[string]*rules{}, map[string]string{}
	for _, queue := range s.r.c.Queues {
		of := s.r.rulesOf(queue)
		if text := kept[queue]; text != of.stored {
			made, bad := s.r.makeRules(text)
			if bad != nil {
				s.r.c.Warn("policy of %s %s: %v; the policy before stays in force", s.r.noun(), queue, bad)
				made = &rules{stored: text, policy: of.policy, admits: of.admits, attempt: of.attempt}
			}
			of = made
		}
		all[queue], doors[queue] = of, of.admits.String()
	}
	s.r.byQueue.Store(&all)
	return doors, nil
}
