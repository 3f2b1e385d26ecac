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
)

// Work is long work on letters that an operator asks for.
type Work struct {
	Event  nixie.Event  // what an operator does to letters: OnRedrive, OnDiscard, OnHold, OnPurge …
	IDs    []nixie.ID   // letters, or
	Filter nixie.Filter // a choice of them; the zero filter chooses all
	Text   string       // the choice as the person wrote it, for the record
	Max    int          // at most so many, the oldest deaths first; 0 is all
	Reason string       // required to redrive, discard, requalify, note or purge; of a note its text
	Force  bool         // redrive also what is not redrivable or needs review

	Rate        float64      // letters per second; 0 is no limit
	MaxRedrives int          // what was redriven so often is refused; 0 is the default, −1 no cap
	Batch       int          // letters in one commit; 0 is the default
	Stop        redrive.Stop // when a redrive stops by itself

	Send      redrive.Send // of a redrive: hands letters to a broker; nil queues them in the store
	SetsAside bool         // Send puts aside what was redriven MaxRedrives times, see [redrive.Config]

	Clock    func() time.Time // of the rate; with Wait for tests
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(OperationView) // told after each group
}

// OperationView is how an operation stands: what dlq redrive, dlq discard and
// the like print. Of the counts from Redriven to Purged it has the one of its
// event.
type OperationView struct {
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
	// [redrive.Outcome]. Of one to a broker only those that died again.
	Succeeded *int64 `json:"succeeded,omitempty"`
	DiedAgain *int64 `json:"died_again,omitempty"`
	UnderWay  *int64 `json:"under_way,omitempty"`
	Stopped   *bool  `json:"stopped,omitempty"` // whether it stopped by itself

	Refused []redrive.Refusal `json:"refused"` // by this run, the first of them
}

// counts are the fields from Redriven to Purged, by event.
func (v *OperationView) counts() map[nixie.Event]**int64 {
	return map[nixie.Event]**int64{
		nixie.OnRedrive: &v.Redriven, nixie.OnDiscard: &v.Discarded, nixie.OnHold: &v.Held, nixie.OnUnhold: &v.Unheld,
		nixie.OnRequalify: &v.Requalified, nixie.OnRestore: &v.Restored, nixie.OnNote: &v.Noted, nixie.OnPurge: &v.Purged,
	}
}

// Done is to how many letters it was done.
func (v OperationView) Done() int64 {
	for _, count := range v.counts() {
		if *count != nil {
			return **count
		}
	}
	return 0
}

func viewOperation(op store.Operation, refused []redrive.Refusal) OperationView {
	v := OperationView{
		Operation: op.ID, Selected: op.Selected, Skipped: op.Skipped, Failed: op.Failed,
		Pending: op.Pending, Refused: orEmpty(refused),
	}
	if count := v.counts()[op.Event]; count != nil {
		*count = &op.Done
	}
	return v
}

// Choice is the filter that work really uses: IDs as they are; otherwise only
// letters in a status that the event can move, unless the filter names
// statuses. A redrive of letters in review needs Force, and a purge is for
// resolved and discarded ones. With Max it leaves out what would be refused, so
// that Max counts letters that go.
func (w *Work) Choice() nixie.Filter {
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
func (w *Work) meant(s nixie.Status) bool {
	switch w.Event {
	case nixie.OnRedrive:
		return s == nixie.StatusOpen || s == nixie.StatusReview && w.Force
	case nixie.OnNote:
		return s.Unresolved()
	}
	return w.possible(s)
}

// possible reports whether the event can be done to letters of a status.
func (w *Work) possible(s nixie.Status) bool {
	switch w.Event {
	case nixie.OnNote:
		return true
	case nixie.OnPurge:
		return (&store.Resolution{Statuses: w.Filter.Statuses}).Purges(s)
	case nixie.OnHold:
		if s == nixie.StatusRedriving { // its next death may hold it, an operator may not
			return false
		}
	}
	_, ok := nixie.NextStatus(s, w.Event)
	return ok
}

func orPointer(p *bool, otherwise bool) *bool {
	if p == nil {
		return &otherwise
	}
	return p
}

// cap is the number of redrives at which a letter is refused; 0 is none.
func (w *Work) cap() int64 {
	switch w.MaxRedrives {
	case 0:
		return policy.DefaultMaxRedrives
	case -1:
		return 0
	}
	return int64(w.MaxRedrives)
}

// tired reports whether a letter was redriven too often.
func (w *Work) tired(l *nixie.Letter) bool {
	return w.cap() > 0 && int64(l.Message.Redrives) >= w.cap()
}

// refusal says why a letter would be skipped, or "".
func (w *Work) refusal(l *nixie.Letter) string {
	if !w.possible(l.Status) {
		return "status " + string(l.Status)
	}
	if w.Event == nixie.OnRestore && l.Message.State != nixie.Dead {
		return "its message is " + string(l.Message.State)
	}
	if w.Event != nixie.OnRedrive {
		return ""
	}
	switch {
	case !w.Force && l.NeedsReview:
		return "needs review: look at it, then --force"
	case !w.Force && !l.Redrivable:
		return "not redrivable without --force"
	case w.tired(l) && !w.SetsAside:
		return "redriven too often"
	}
	return ""
}

// Begin freezes the selection of work and returns its operation. Nothing else
// changes before Run.
func (o *Office) Begin(ctx context.Context, w *Work) (OperationView, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationView{}, err
	}
	op := store.Operation{Event: w.Event, Actor: o.actor, Reason: w.Reason, Filter: w.Text, Force: w.Force}
	choice := w.Choice()
	if w.Event == nixie.OnPurge {
		op.Filter = choice.String() // the statuses that it is for are read from it
	}
	op, err = e.Plan(ctx, op, choice, w.Max)
	return viewOperation(op, nil), err
}

// Run does what is pending of an operation, begun now or long ago. Work says
// how fast; what is done to which letters was settled by Begin. When ctx ends
// the view says how far it came and the error wraps the context's; a redrive that
// stops by itself does so with a [redrive.StoppedError].
func (o *Office) Run(ctx context.Context, id nixie.ID, w *Work) (OperationView, error) {
	e, err := o.engine(w)
	if err != nil {
		return OperationView{}, err
	}
	r, err := e.Run(ctx, id)
	v := viewOperation(r.Operation, r.Refused)
	if r.Event == nixie.OnRedrive {
		by := (*redrive.StoppedError)(nil)
		stopped := errors.As(err, &by)
		v.DiedAgain, v.Stopped = &r.Outcome.DiedAgain, &stopped
		if w.Send == nil {
			v.Succeeded, v.UnderWay = &r.Outcome.Succeeded, &r.Outcome.UnderWay
		} else {
			v.Quarantined, v.Unanswered = &r.Quarantined, &r.Unanswered
		}
	}
	return v, err
}

// Operation returns how an operation stands, and what it does.
func (o *Office) Operation(ctx context.Context, id nixie.ID) (store.Operation, error) {
	op, _, err := o.store.Operation(ctx, id, 0)
	return op, err
}

func (o *Office) engine(w *Work) (*redrive.Engine, error) {
	c := redrive.Config{Store: o.store, Batch: w.Batch, Rate: w.Rate, MaxRedrives: w.MaxRedrives, Stop: w.Stop, Send: w.Send, SetsAside: w.SetsAside, Clock: w.Clock, Wait: w.Wait}
	if c.Clock == nil {
		c.Clock = o.clock
	}
	if w.Progress != nil {
		c.Progress = func(op store.Operation) { w.Progress(viewOperation(op, nil)) }
	}
	return redrive.New(c)
}

// Plan is what work would do if it began now.
type Plan struct {
	Selected int64       `json:"selected"`
	Movable  int64       `json:"movable"`               // of them go
	Aside    int64       `json:"quarantined,omitempty"` // of those, into quarantine
	Skipped  int64       `json:"skipped"`               // of them are refused
	Refused  []Count     `json:"refused"`               // why
	Groups   []PlanGroup `json:"groups"`                // largest first
	ByQueue  []Count     `json:"by_queue"`
	Letters  []nixie.ID  `json:"letters"` // in the order of the plan, at most [MaxPlanned]
}

// PlanGroup is one cause in a plan.
type PlanGroup struct {
	Signature   string `json:"signature"`
	Fingerprint string `json:"fingerprint"`
	Count       int64  `json:"count"`
}

// MaxPlanned is how many letters a [Plan] names; it counts them all.
const MaxPlanned = 1_000

// planned is what a preview keeps of a letter.
type planned struct {
	id                 nixie.ID
	fingerprint, queue string
	refusal            string
	aside              bool
}

// Preview tells what Begin and Run would do now, and changes nothing. A key that
// another message took meanwhile is the one refusal that it does not foresee.
// Memory is bounded by Max; without Max by [MaxPlanned].
func (o *Office) Preview(ctx context.Context, w *Work) (Plan, error) {
	tally := planTally{groups: map[string]*PlanGroup{}, queues: map[string]int64{}, refused: map[string]int64{}}
	// Letters come latest death first and the plan begins with the oldest: what
	// was seen last is what the plan has first.
	keep := MaxPlanned
	if w.Max > 0 {
		keep = w.Max
	}
	var ring []planned
	seen := 0
	for l, err := range o.AllLetters(ctx, w.Choice(), false) {
		if err != nil {
			return Plan{}, err
		}
		p := planned{l.ID, l.Fingerprint, l.Message.Queue, w.refusal(&l), w.SetsAside && w.tired(&l)}
		tally.label(&l)
		tally.add(p, 1)
		if len(ring) < keep {
			ring = append(ring, p)
		} else {
			if w.Max > 0 {
				tally.add(ring[seen%keep], -1)
			}
			ring[seen%keep] = p
		}
		seen++
	}
	plan := tally.plan()
	for i := range min(len(ring), MaxPlanned) {
		plan.Letters = append(plan.Letters, ring[(seen-1-i)%keep].id)
	}
	plan.Letters = orEmpty(plan.Letters)
	return plan, nil
}

type planTally struct {
	selected, skipped, aside int64
	groups                   map[string]*PlanGroup
	queues, refused          map[string]int64
}

func (t *planTally) label(l *nixie.Letter) {
	if t.groups[l.Fingerprint] == nil {
		t.groups[l.Fingerprint] = &PlanGroup{Signature: l.Signature, Fingerprint: l.Fingerprint}
	}
}

func (t *planTally) add(p planned, n int64) {
	t.selected += n
	t.groups[p.fingerprint].Count += n
	t.queues[p.queue] += n
	switch {
	case p.refusal != "":
		t.skipped += n
		t.refused[p.refusal] += n
	case p.aside:
		t.aside += n
	}
}

func (t *planTally) plan() Plan {
	p := Plan{
		Selected: t.selected, Movable: t.selected - t.skipped, Aside: t.aside, Skipped: t.skipped,
		Refused: counted(t.refused), ByQueue: counted(t.queues), Groups: []PlanGroup{},
	}
	for _, g := range t.groups {
		if g.Count > 0 {
			p.Groups = append(p.Groups, *g)
		}
	}
	slices.SortFunc(p.Groups, func(a, b PlanGroup) int {
		return byCount(a.Count, a.Fingerprint, b.Count, b.Fingerprint)
	})
	return p
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
