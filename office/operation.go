package office

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// OperationRequest asks for an operation on many letters.
type OperationRequest struct {
	Event  store.Event              // OnRedrive, OnDiscard, OnHold, OnPurge …
	IDs    []nixie.ID               // letters, or
	Filter nixie.Filter             // a filter of them; the zero filter matches all
	Text   string                   // the filter as the operator wrote it, for the record
	Family []FamilyView             // those that the operator named and Filter has the groups of, for the plan
	Picked func(*nixie.Letter) bool // says which letters of Filter the IDs are; nil: IDs were named
	Max    int                      // the most letters, oldest death first; 0 means all
	Reason string                   // required to redrive, discard, requalify, note or purge; the text of a note
	Force  bool                     // redrive also letters that are not redrivable or need review

	Rate        float64       // letters per second; 0 means no limit
	ExpiresIn   time.Duration // of a redrive into queues: new expiry of messages that have one; 0 means none
	MaxRedrives int           // a letter with that many redrives is refused; 0 means the default, −1 no cap
	Batch       int           // letters in one commit; 0 means the default
	Stop        redrive.Stop  // when a redrive stops by itself
	Reviewed    bool          // of an unhold: an operator found that the letters may be redriven without force
	Guarded     bool          // Run refuses a letter that changed after Begin
	Await       time.Duration // bounds how long Run waits for the outcomes of a redrive into queues; 0 means no wait

	Destination string // the channel that Send sends to, for the record

	Send      redrive.SendFunc // of a redrive: sends letters to a broker; nil queues them in the store
	Edit      redrive.EditFunc // of a redrive into queues: changes bodies and headers; nil leaves them
	SetsAside bool             // Send sets aside letters with MaxRedrives redrives, see [redrive.Config]

	Clock    func() time.Time // of the rate; with Wait for tests
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(OperationResult) // called after each group
}

// OperationResult counts the letters of an operation. Dlq redrive, dlq discard and the like print
// it. Of the counts from Redriven to Purged it has the one of its event.
type OperationResult struct {
	Operation   nixie.ID `json:"operation"`
	Selected    int64    `json:"selected"`
	Redriven    *int64   `json:"redriven,omitempty"`
	Discarded   *int64   `json:"discarded,omitempty"`
	Held        *int64   `json:"held,omitempty"`
	Unheld      *int64   `json:"unheld,omitempty"`
	Requalified *int64   `json:"requalified,omitempty"`
	Restored    *int64   `json:"restored,omitempty"`
	Noted       *int64   `json:"noted,omitempty"`
	Purged      *int64   `json:"purged,omitempty"`
	Skipped     int64    `json:"skipped"` // the letter's state did not allow it
	Failed      int64    `json:"failed"`  // the letter is damaged
	Pending     int64    `json:"pending"`

	// These counts are of a redrive to a broker, by this run. Quarantined is part of Redriven.
	// Unanswered is part of Pending: sent, and the broker has not confirmed.
	Quarantined *int64 `json:"quarantined,omitempty"`
	Unanswered  *int64 `json:"unanswered,omitempty"`

	// These are the outcomes of redriven letters by now; see [store.Outcome]. A redrive to a broker
	// knows only DiedAgain and Unobserved.
	Succeeded   *int64 `json:"succeeded,omitempty"`
	DiedAgain   *int64 `json:"died_again,omitempty"`
	SameFailure *int64 `json:"same_failure,omitempty"` // part of DiedAgain, in the same group as before
	NewFailure  *int64 `json:"new_failure,omitempty"`  // part of DiedAgain, in another group
	Gone        *int64 `json:"gone,omitempty"`
	Unobserved  *int64 `json:"unobserved,omitempty"`
	UnderWay    *int64 `json:"under_way,omitempty"`
	Stopped     *bool  `json:"stopped,omitempty"` // whether it stopped by itself

	Refused []redrive.Refusal `json:"refused"` // by this run, the first of them
}

// counts returns the fields from Redriven to Purged, by event.
func (v *OperationResult) counts() map[store.Event]**int64 {
	return map[store.Event]**int64{
		store.OnRedrive: &v.Redriven, store.OnDiscard: &v.Discarded, store.OnHold: &v.Held, store.OnUnhold: &v.Unheld,
		store.OnRequalify: &v.Requalified, store.OnRestore: &v.Restored, store.OnNote: &v.Noted, store.OnPurge: &v.Purged,
	}
}

// Done returns the number of letters that the operation changed.
func (v OperationResult) Done() int64 {
	for _, count := range v.counts() {
		if *count != nil {
			return **count
		}
	}
	return 0
}

// Outstanding counts the redriven letters that are not known to have succeeded: they died again or
// have not ended.
func (v OperationResult) Outstanding() (n int64) {
	for _, count := range [...]*int64{v.DiedAgain, v.UnderWay} {
		if count != nil {
			n += *count
		}
	}
	return n
}

func resultOf(op store.Operation, refused []redrive.Refusal) OperationResult {
	v := OperationResult{
		Operation: op.ID, Selected: op.Selected, Skipped: op.Skipped, Failed: op.Failed,
		Pending: op.Pending, Refused: orEmpty(refused),
	}
	if count := v.counts()[op.Event]; count != nil {
		*count = &op.Done
	}
	return v
}

// EffectiveFilter returns the filter that selects the letters of the operation. IDs stay as they
// are. A filter that names no statuses gets those that the event can move. A redrive moves letters
// in review only with Force; a purge moves resolved and discarded ones. With Max it leaves out
// letters that a redrive would refuse, so that Max counts letters that go.
func (w *OperationRequest) EffectiveFilter() nixie.Filter {
	if len(w.IDs) > 0 {
		return nixie.Filter{IDs: w.IDs}
	}
	f := w.Filter
	if len(f.Statuses) == 0 {
		for _, s := range nixie.Statuses() {
			if w.selects(s) {
				f.Statuses = append(f.Statuses, s)
			}
		}
	}
	if w.Max == 0 || w.Event != store.OnRedrive {
		return f
	}
	if !w.Force {
		f.Redrivable, f.NeedsReview = orPointer(f.Redrivable, true), orPointer(f.NeedsReview, false)
	}
	if most := w.cap() - 1; most >= 0 && !w.SetsAside && (f.Redrives.Max == nil || *f.Redrives.Max > most) {
		f.Redrives.Max = &most
	}
	return f
}

// selects reports whether the operation takes letters of a status when the filter names none.
func (w *OperationRequest) selects(s nixie.Status) bool {
	switch w.Event {
	case store.OnRedrive:
		return s == nixie.StatusOpen || s == nixie.StatusReview && w.Force
	case store.OnNote:
		return s.Unresolved()
	}
	_, why := lifecycle.Why(lifecycle.Facts{Status: s, Dead: true}, &store.Resolution{Event: w.Event, Statuses: w.Filter.Statuses})
	return why == ""
}

// NoRedrive says why a letter cannot be redriven, not even with force; "" means that it can.
func (o *Office) NoRedrive(l *nixie.Letter) string {
	_, why := lifecycle.Why(lifecycle.Of(l, o.clock()), &store.Resolution{Letter: l.ID, Event: store.OnRedrive, Force: true})
	return why
}

func orPointer(p *bool, otherwise bool) *bool {
	if p == nil {
		return &otherwise
	}
	return p
}

// cap returns the number of redrives at which a letter is refused; 0 means no cap.
func (w *OperationRequest) cap() int64 {
	switch w.MaxRedrives {
	case 0:
		return policy.DefaultMaxRedrives
	case -1:
		return 0
	}
	return int64(w.MaxRedrives)
}

// Begin freezes the selection and returns the operation. Run changes the letters.
func (o *Office) Begin(ctx context.Context, w *OperationRequest) (OperationResult, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationResult{}, err
	}
	op, err := e.Plan(ctx, w.operation(o.actor), w.EffectiveFilter(), w.Max)
	return resultOf(op, nil), err
}

// overCap reports whether a letter has reached the cap of redrives.
func (w *OperationRequest) overCap(l *nixie.Letter) bool {
	return w.cap() > 0 && int64(l.Message.Redrives) >= w.cap()
}

// operation returns the operation without a selection.
func (w *OperationRequest) operation(actor string) store.Operation {
	op := store.Operation{Event: w.Event, Actor: actor, Reason: w.Reason, Filter: w.Text, Force: w.Force, Destination: w.Destination,
		Reviewed: w.Reviewed, Guarded: w.Guarded}
	if w.Event == store.OnPurge {
		op.Statuses = w.Filter.Statuses
	}
	return op
}

// Run works through the pending letters of an operation, begun now or long ago. Begin decided the
// event and the letters; w sets the rate and the limits. When ctx ends, Run returns the counts so
// far, and its error wraps that of the context. A redrive that stops by itself returns a
// [redrive.StoppedError].
func (o *Office) Run(ctx context.Context, id nixie.ID, w *OperationRequest) (OperationResult, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationResult{}, err
	}
	r, err := e.Run(ctx, id)
	if err == nil && w.Await > 0 && r.Event == store.OnRedrive {
		r.Outcome, err = e.Await(ctx, id, w.Await)
	}
	v := resultOf(r.Operation, r.Refused)
	if r.Event == store.OnRedrive {
		by := (*redrive.StoppedError)(nil)
		stopped := errors.As(err, &by)
		died := r.Outcome.DiedAgain()
		v.DiedAgain, v.Stopped = &died, &stopped
		if w.Send == nil {
			v.Succeeded, v.UnderWay = &r.Outcome.Succeeded, &r.Outcome.UnderWay
			v.SameFailure, v.NewFailure = &r.Outcome.SameFailure, &r.Outcome.NewFailure
			v.Gone = &r.Outcome.Gone
		} else {
			v.Quarantined, v.Unanswered, v.Unobserved = &r.Quarantined, &r.Unanswered, &r.Outcome.Unobserved
		}
	}
	return v, err
}

// Operation returns an operation with its counts.
func (o *Office) Operation(ctx context.Context, id nixie.ID) (store.Operation, error) {
	return store.FindOperation(ctx, o.store, store.OperationQuery{ID: id})
}

// Repeat makes those letters of a redrive pending again that died again since, for another Run. It
// returns the operation with its new counts.
func (o *Office) Repeat(ctx context.Context, id nixie.ID) (store.Operation, error) {
	return o.store.Plan(ctx, store.Operation{ID: id}, nixie.Filter{}, 0)
}

func (o *Office) engine(w *OperationRequest) (*redrive.Engine, error) {
	c := redrive.Config{Store: o.store, Actor: o.actor,
		Batch: w.Batch, Rate: w.Rate, MaxRedrives: w.MaxRedrives, Force: w.Force, Stop: w.Stop,
		ExpiresIn: w.ExpiresIn, Send: w.Send, Edit: w.Edit, SetsAside: w.SetsAside, Clock: w.Clock, Wait: w.Wait}
	if c.Clock == nil {
		c.Clock = o.clock
	}
	if w.Progress != nil {
		c.Progress = func(op store.Operation) { w.Progress(resultOf(op, nil)) }
	}
	return redrive.New(c)
}

// sortedCounts lists positive counts, largest first.
func sortedCounts(m map[string]int64) []Count {
	list := []Count{}
	for value, n := range m {
		if n > 0 {
			list = append(list, Count{value, n})
		}
	}
	slices.SortFunc(list, func(a, b Count) int { return byCount(a.Count, a.Value, b.Count, b.Value) })
	return list
}
