package runner

import (
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// decider decides for a job: it asks the policy, and applies the mode of the job where the policy
// gives up on an item. A custom command was asked before; its answer waits here under the message's
// ID.
type decider struct {
	policy func(queue string) *policy.Policy
	mode   Mode
	mask   func(*nixie.Failure)    // for the failure of a custom command
	tell   func(*nixie.Settlement) // tells the sender of a message that dies
	once   bool                    // of copies of letters: nothing follows a failure

	mu      sync.Mutex
	answers map[nixie.ID]answer
}

// answer is the decision of a custom command.
type answer struct {
	verb   nixie.Verb
	second error // the failure of the custom command itself
}

func (j *decider) keep(id nixie.ID, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[id] = a
}

// forget drops an answer that was never taken, because its delivery was lost.
func (j *decider) forget(id nixie.ID) { j.take(id) }

func (j *decider) take(id nixie.ID) (answer, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a, ok := j.answers[id]
	delete(j.answers, id)
	return a, ok
}

// Decide implements policy.Decider.
func (j *decider) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	a, asked := j.take(d.ID)
	if refusedAnswer(d, f) { // another attempt would do the work again
		marked := *f
		marked.Err = nixie.Verdict(nixie.Bury, f.Err)
		return j.decide(d, &marked, now, a, asked)
	}
	st := j.decide(d, f, now, a, asked)
	if f != nil && !j.once {
		j.tell(&st)
	}
	return st
}

// preview decides as Decide does, and leaves the answer for it.
func (j *decider) preview(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	j.mu.Lock()
	a, asked := j.answers[d.ID]
	j.mu.Unlock()
	return j.decide(d, f, now, a, asked)
}

func (j *decider) decide(d *nixie.Delivery, f *nixie.Failure, now time.Time, a answer, asked bool) nixie.Settlement {
	st := j.policy(d.Queue).Decide(d, f, now)
	if j.once && st.Failure != nil {
		st.Verb, st.Burial = nixie.Discard, nil
	}
	if st.Burial == nil {
		return st
	}
	switch {
	case asked && a.verb == nixie.Discard:
		st.Verb, st.Burial, st.Note = nixie.Discard, nil, "the custom command discarded it"
	case asked && a.verb == nixie.Halt:
		st.Verb = nixie.Halt
	case asked && a.verb == nixie.Retry, !asked && j.mode == KeepOn && st.Burial.Cause == nixie.CauseExhausted:
		st = j.pastAttempts(d, st, now)
	}
	if a.second != nil {
		st.Second = j.policy(d.Queue).Diagnose(d, a.second,
			policy.Attempt{StartedAt: now, FailedAt: now, Worker: f.Worker, Node: f.Node, Mask: j.mask})
		st.Second.Decision = st.Verb
	}
	if st.Failure != nil {
		st.Failure.Decision = st.Verb
	}
	return st
}

// pastAttempts retries an item past max_attempts, but not past max_deliveries.
func (j *decider) pastAttempts(d *nixie.Delivery, st nixie.Settlement, now time.Time) nixie.Settlement {
	c := j.policy(d.Queue).Config()
	if c.MaxDeliveries > 0 && d.Deliveries >= c.MaxDeliveries {
		return st
	}
	st.Verb, st.Burial = nixie.Retry, nil
	st.Delay = c.Backoff.Ceiling(d.Attempts)
	if st.Failure.Err != nil {
		st.Delay = min(max(st.Delay, nixie.OutcomeOf(st.Failure.Err).After), nixie.MaxDelay)
	}
	st.Failure.NextAt = now.Add(st.Delay)
	return st
}
