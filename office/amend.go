package office

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// AmendRequest asks for a change of messages.
type AmendRequest struct {
	Verb   store.ChangeVerb
	Reason string       // for the audit; required for a hold
	At     time.Time    // of a reschedule
	Queue  string       // of a move
	What   nixie.Reason // of a hold: the reason of its letter; empty means unknown
	Free   bool         // of a hold: its followers in the stream do not wait for it
}

// AmendView shows one message after a change. Message cancel, hold, reschedule and the like print
// it.
type AmendView struct {
	ID        nixie.ID    `json:"id"`
	Key       string      `json:"key"`
	Queue     string      `json:"queue"`
	Stream    string      `json:"stream"`
	State     nixie.State `json:"state"`
	Attempts  int         `json:"attempts"`
	NotBefore Timestamp   `json:"not_before"`
	Letter    string      `json:"letter"` // of a hold
	Error     string      `json:"error"`  // the refusal of the change
}

// amendStep is the number of messages that one commit changes.
const amendStep = 1_000

// Amendable narrows a filter to queued messages, which a change can move, unless the filter names
// states.
func Amendable(f nixie.Filter) nixie.Filter {
	if len(f.States) == 0 {
		f.States = []nixie.State{nixie.Queued}
	}
	return f
}

// Amend changes the messages of the given IDs, a thousand in one commit, and calls told with the
// view of each. It leaves a message in the wrong state as it is. It returns an error when the store
// failed or told returned one.
func (o *Office) Amend(ctx context.Context, ids []nixie.ID, a *AmendRequest, told func(AmendView) error) error {
	change := o.change(a)
	if err := change.Check(); err != nil {
		return err
	}
	for len(ids) > 0 {
		part := ids[:min(len(ids), amendStep)]
		ids = ids[len(part):]
		errs := o.store.Amend(ctx, part, change)
		for i, id := range part {
			if err := errs[i]; err != nil && !refused(err) {
				return err
			}
			v, err := o.amended(ctx, id, errs[i])
			if err != nil {
				return err
			}
			if err := told(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// refused reports whether an error is about one message only.
func refused(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeConflict, nixie.CodeNotFound, nixie.CodeLimit:
		return true
	}
	return false
}

func (o *Office) amended(ctx context.Context, id nixie.ID, refusal error) (AmendView, error) {
	v := AmendView{ID: id}
	if refusal != nil {
		v.Error = refusal.Error()
	}
	list, _, err := o.store.Messages(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 1})
	if err != nil || len(list) == 0 {
		return v, err
	}
	m := &list[0].Message
	v.Key, v.Queue, v.Stream, v.State, v.Attempts, v.NotBefore = m.Key, m.Queue, m.Stream, m.State, m.Attempts, dueAt(m)
	if m.State != nixie.Dead {
		return v, nil
	}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 1})
	if err == nil && len(letters) == 1 {
		v.Letter = letters[0].ID.String()
	}
	return v, err
}

// change makes the store's change from the request. A hold writes a failure, so that the history
// names the operator and the reason.
func (o *Office) change(a *AmendRequest) store.Change {
	c := store.Change{Verb: a.Verb, Actor: o.actor, Reason: a.Reason, At: a.At, Queue: a.Queue, Free: a.Free}
	if a.Verb != store.Hold {
		return c
	}
	now := o.clock()
	c.Hold = &nixie.Failure{
		StartedAt: now, FailedAt: now, Decision: nixie.Hold, Class: nixie.ClassPermanent, Reason: a.What,
		Type: "operator", Text: "held by an operator: " + a.Reason, Worker: o.actor,
	}
	if c.Hold.Reason == "" {
		c.Hold.Reason = nixie.ReasonUnknown
	}
	label, fingerprint := policy.Signature(c.Hold)
	c.Burial = &nixie.Burial{
		Cause: nixie.CauseOperator, Status: nixie.StatusReview, Signature: label, Fingerprint: fingerprint,
		Redrivable: true, NeedsReview: true, Rule: "held by an operator",
	}
	return c
}
