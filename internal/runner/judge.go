package runner

import (
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// judge is the decider of a job: policy, and where policy gives up on an item,
// the mode of the job. A custom command was asked before; its answer waits here
// under the message's ID.
type judge struct {
	policy func(queue string) *policy.Policy
	mode   Mode
	mask   func(*nixie.Failure) // of what a custom command failed of

	mu    sync.Mutex
	asked map[nixie.ID]answer
}

// answer is what a custom command said.
type answer struct {
	verb   nixie.Verb
	second error // the custom command failed itself
}

func (j *judge) note(id nixie.ID, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[id] = a
}

// forget drops an answer that was never taken, because its delivery was lost.
func (j *judge) forget(id nixie.ID) { j.take(id) }

func (j *judge) take(id nixie.ID) (answer, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a, ok := j.asked[id]
	delete(j.asked, id)
	return a, ok
}

// Decide implements policy.Decider.
func (j *judge) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	a, asked := j.take(d.ID)
	return j.decide(d, f, now, a, asked)
}

// preview is Decide that takes no answer away.
func (j *judge) preview(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	j.mu.Lock()
	a, asked := j.asked[d.ID]
	j.mu.Unlock()
	return j.decide(d, f, now, a, asked)
}

func (j *judge) decide(d *nixie.Delivery, f *nixie.Failure, now time.Time, a answer, asked bool) nixie.Settlement {
	st := j.policy(d.Queue).Decide(d, f, now)
	if st.Burial == nil {
		return st
	}
	switch {
	case asked && a.verb == nixie.Discard:
		st.Verb, st.Burial, st.Note = nixie.Discard, nil, "the custom command discarded it"
	case asked && a.verb == nixie.Halt:
		st.Verb = nixie.Halt
	case asked && a.verb == nixie.Retry, !asked && j.mode == KeepOn && st.Burial.Cause == nixie.CauseExhausted:
		st = j.again(d, st, now)
	}
	if a.second != nil {
		st.Second = j.policy(d.Queue).Diagnose(d, a.second, policy.Facts{StartedAt: now, FailedAt: now, Worker: f.Worker, Node: f.Node, Mask: j.mask})
		st.Second.Decision = st.Verb
	}
	if st.Failure != nil {
		st.Failure.Decision = st.Verb
	}
	return st
}

// again retries an item past its attempts, but never past its deliveries.
func (j *judge) again(d *nixie.Delivery, st nixie.Settlement, now time.Time) nixie.Settlement {
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
