package office

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// AmendRequest is a change of messages that an operator asks for.
type AmendRequest struct {
	Verb   store.ChangeVerb
	Reason string       // for the audit; required for a hold
	At     time.Time    // of a reschedule
	Queue  string       // of a move
	What   nixie.Reason // of a hold: what its letter says went wrong; empty is unknown
	Free   bool         // of a hold: followers in its stream do not wait for it
}

// AmendView is what became of one message: what message cancel and its
// like print.
type AmendView struct {
	ID        nixie.ID    `json:"id"`
	Key       string      `json:"key"`
	Queue     string      `json:"queue"`
	Stream    string      `json:"stream"`
	State     nixie.State `json:"state"`
	Attempts  int         `json:"attempts"`
	NotBefore Timestamp   `json:"not_before"`
	Letter    string      `json:"letter"` // of a hold
	Error     string      `json:"error"`  // why it was not changed
}

// alterStep is how many messages are changed in one commit.
const alterStep = 1_000

// MessageIDs finds the messages that the arguments name, each once, and says
// everything that is wrong with them at once.
func (o *Office) MessageIDs(ctx context.Context, args []string) ([]nixie.ID, error) {
	var ids []nixie.ID
	var wrong []error
	seen := map[nixie.ID]bool{}
	for _, arg := range args {
		r, err := o.Message(ctx, arg)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if !seen[r.ID] {
			seen[r.ID] = true
			ids = append(ids, r.ID)
		}
	}
	return ids, errors.Join(wrong...)
}

// Amendable is the choice that a verb makes of the messages that match: those
// that it can change, unless the filter names states.
func Amendable(f nixie.Filter) nixie.Filter {
	if len(f.States) == 0 {
		f.States = []nixie.State{nixie.Queued}
	}
	return f
}

// Amend changes the messages of the given IDs, a thousand in one commit, and
// tells what became of each. A message in the wrong state is left as it is; an
// error says that nobody could be asked any more.
func (o *Office) Amend(ctx context.Context, ids []nixie.ID, a *AmendRequest, told func(AmendView) error) error {
	change := o.change(a)
	if err := change.Check(); err != nil {
		return err
	}
	for len(ids) > 0 {
		part := ids[:min(len(ids), alterStep)]
		ids = ids[len(part):]
		errs := o.store.Amend(ctx, part, change)
		for i, id := range part {
			if err := errs[i]; err != nil && !refused(err) {
				return err
			}
			v, err := o.altered(ctx, id, errs[i])
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

// refused reports whether an error is an answer about one message.
func refused(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeConflict, nixie.CodeNotFound, nixie.CodeLimit:
		return true
	}
	return false
}

func (o *Office) altered(ctx context.Context, id nixie.ID, refusal error) (AmendView, error) {
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

// change is the change of an alteration. A hold tells in the history who held
// the message and why.
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
