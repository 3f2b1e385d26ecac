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

// OperationRequest is long work on letters that an operator asks for.
type OperationRequest struct {
	Event  nixie.Event  // what an operator does to letters: OnRedrive, OnDiscard, OnHold, OnPurge …
	IDs    []nixie.ID   // letters, or
	Filter nixie.Filter // a choice of them; the zero filter chooses all
	Text   string       // the choice as the person wrote it, for the record
	Max    int          // at most so many, the oldest deaths first; 0 is all
	Reason string       // required to redrive, discard, requalify, note or purge; of a note its text
	Force  bool         // redrive also what is not redrivable or needs review

	Rate        float64       // letters per second; 0 is no limit
	MaxRedrives int           // what was redriven so often is refused; 0 is the default, −1 no cap
	Batch       int           // letters in one commit; 0 is the default
	Stop        redrive.Stop  // when a redrive stops by itself
	Reviewed    bool          // of an unhold: a person found that the letters may be redriven without force
	Guarded     bool          // a letter that changes between Begin and Run is refused
	Await       time.Duration // Run waits so long at most until each letter of a redrive into queues has an outcome; 0 does not wait

	Destination string // where Send brings letters, for the record

	Send      redrive.Send // of a redrive: hands letters to a broker; nil queues them in the store
	Edit      redrive.Edit // of a redrive into queues: what the messages say from then on; nil leaves them
	SetsAside bool         // Send puts aside what was redriven MaxRedrives times, see [redrive.Config]

	Clock    func() time.Time // of the rate; with Wait for tests
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(OperationResult) // told after each group
}

// OperationResult is how an operation stands: what dlq redrive, dlq discard and
// the like print. Of the counts from Redriven to Purged it has the one of its
// event.
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

	// Of a redrive to a broker, by this run: of those redriven the ones that were put
	// into quarantine, and of those pending the ones that were sent and have no answer.
	Quarantined *int64 `json:"quarantined,omitempty"`
	Unanswered  *int64 `json:"unanswered,omitempty"`

	// Of a redrive what became of those that it moved, as far as it is known; see
	// [store.Outcome]. Of one to a broker only those that died again.
	Succeeded   *int64 `json:"succeeded,omitempty"`
	DiedAgain   *int64 `json:"died_again,omitempty"`
	SameFailure *int64 `json:"same_failure,omitempty"` // of those, in the group that they were in
	NewFailure  *int64 `json:"new_failure,omitempty"`  // of those, in another
	UnderWay    *int64 `json:"under_way,omitempty"`
	Stopped     *bool  `json:"stopped,omitempty"` // whether it stopped by itself

	Refused []redrive.Refusal `json:"refused"` // by this run, the first of them
}

// counts are the fields from Redriven to Purged, by event.
func (v *OperationResult) counts() map[nixie.Event]**int64 {
	return map[nixie.Event]**int64{
		nixie.OnRedrive: &v.Redriven, nixie.OnDiscard: &v.Discarded, nixie.OnHold: &v.Held, nixie.OnUnhold: &v.Unheld,
		nixie.OnRequalify: &v.Requalified, nixie.OnRestore: &v.Restored, nixie.OnNote: &v.Noted, nixie.OnPurge: &v.Purged,
	}
}

// Done is to how many letters it was done.
func (v OperationResult) Done() int64 {
	for _, count := range v.counts() {
		if *count != nil {
			return **count
		}
	}
	return 0
}

// Outstanding is how many of those that were redriven have not succeeded, as far as that
// is known: they died again, or are on their way.
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

// EffectiveFilter is the filter that work really uses: IDs as they are; otherwise only
// letters in a status that the event can move, unless the filter names
// statuses. A redrive of letters in review needs Force, and a purge is for
// resolved and discarded ones. With Max it leaves out what would be refused, so
// that Max counts letters that go.
func (w *OperationRequest) EffectiveFilter() nixie.Filter {
	if len(w.IDs) > 0 {
		return nixie.Filter{IDs: w.IDs}
	}
	f := w.Filter
	if len(f.Statuses) == 0 {
		for _, s := range nixie.Statuses() {
			if w.meant(s) {
				f.Statuses = append(f.Statuses, s)
			}
		}
	}
	if w.Max == 0 || w.Event != nixie.OnRedrive {
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

// meant reports whether letters of a status are chosen when nobody says of which.
func (w *OperationRequest) meant(s nixie.Status) bool {
	switch w.Event {
	case nixie.OnRedrive:
		return s == nixie.StatusOpen || s == nixie.StatusReview && w.Force
	case nixie.OnNote:
		return s.Unresolved()
	}
	_, why := lifecycle.Why(lifecycle.Facts{Status: s, Dead: true}, &store.Resolution{Event: w.Event, Statuses: w.Filter.Statuses})
	return why == ""
}

func orPointer(p *bool, otherwise bool) *bool {
	if p == nil {
		return &otherwise
	}
	return p
}

// cap is the number of redrives at which a letter is refused; 0 is none.
func (w *OperationRequest) cap() int64 {
	switch w.MaxRedrives {
	case 0:
		return policy.DefaultMaxRedrives
	case -1:
		return 0
	}
	return int64(w.MaxRedrives)
}

// Begin freezes the selection of work and returns its operation. Nothing else
// changes before Run.
func (o *Office) Begin(ctx context.Context, w *OperationRequest) (OperationResult, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationResult{}, err
	}
	op, err := e.Plan(ctx, w.operation(o.actor), w.EffectiveFilter(), w.Max)
	return resultOf(op, nil), err
}

// tired reports whether a letter was redriven too often.
func (w *OperationRequest) tired(l *nixie.Letter) bool {
	return w.cap() > 0 && int64(l.Message.Redrives) >= w.cap()
}

// operation is what work asks for, before it has a selection.
func (w *OperationRequest) operation(actor string) store.Operation {
	op := store.Operation{Event: w.Event, Actor: actor, Reason: w.Reason, Filter: w.Text, Force: w.Force, Destination: w.Destination,
		Reviewed: w.Reviewed, Guarded: w.Guarded}
	if w.Event == nixie.OnPurge {
		op.Statuses = w.Filter.Statuses
	}
	return op
}

// Run does what is pending of an operation, begun now or long ago. Work says
// how fast; what is done to which letters was settled by Begin. When ctx ends
// the view says how far it came and the error wraps the context's; a redrive that
// stops by itself does so with a [redrive.StoppedError].
func (o *Office) Run(ctx context.Context, id nixie.ID, w *OperationRequest) (OperationResult, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationResult{}, err
	}
	r, err := e.Run(ctx, id)
	if err == nil && w.Await > 0 && r.Event == nixie.OnRedrive {
		r.Outcome, err = e.Await(ctx, id, w.Await)
	}
	v := resultOf(r.Operation, r.Refused)
	if r.Event == nixie.OnRedrive {
		by := (*redrive.StoppedError)(nil)
		stopped := errors.As(err, &by)
		died := r.Outcome.DiedAgain()
		v.DiedAgain, v.Stopped = &died, &stopped
		if w.Send == nil {
			v.Succeeded, v.UnderWay = &r.Outcome.Succeeded, &r.Outcome.UnderWay
			v.SameFailure, v.NewFailure = &r.Outcome.SameFailure, &r.Outcome.NewFailure
		} else {
			v.Quarantined, v.Unanswered = &r.Quarantined, &r.Unanswered
		}
	}
	return v, err
}

// Operation returns how an operation stands, and what it does.
func (o *Office) Operation(ctx context.Context, id nixie.ID) (store.Operation, error) {
	return store.FindOperation(ctx, o.store, store.OperationLook{ID: id})
}

// Repeat makes those letters pending again that a redrive moved and that died again since,
// for another Run of it, and returns how it stands then.
func (o *Office) Repeat(ctx context.Context, id nixie.ID) (store.Operation, error) {
	return o.store.Plan(ctx, store.Operation{ID: id}, nixie.Filter{}, 0)
}

func (o *Office) engine(w *OperationRequest) (*redrive.Engine, error) {
	c := redrive.Config{Store: o.store, Batch: w.Batch, Rate: w.Rate, MaxRedrives: w.MaxRedrives, Force: w.Force, Stop: w.Stop,
		Send: w.Send, Edit: w.Edit, SetsAside: w.SetsAside, Clock: w.Clock, Wait: w.Wait}
	if c.Clock == nil {
		c.Clock = o.clock
	}
	if w.Progress != nil {
		c.Progress = func(op store.Operation) { w.Progress(resultOf(op, nil)) }
	}
	return redrive.New(c)
}

// counted lists counts, largest first.
func counted(m map[string]int64) []Count {
	list := []Count{}
	for value, n := range m {
		if n > 0 {
			list = append(list, Count{value, n})
		}
	}
	slices.SortFunc(list, func(a, b Count) int { return byCount(a.Count, a.Value, b.Count, b.Value) })
	return list
}
