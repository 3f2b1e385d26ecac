package office

import (
	"context"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plan shows what an operation would do if it began now.
type Plan struct {
	Selected    int64        `json:"selected"`
	Movable     int64        `json:"movable"`               // part of Selected that goes
	Quarantined int64        `json:"quarantined,omitempty"` // part of Movable that goes into quarantine
	Edited      int64        `json:"edited,omitempty"`      // part of Movable that gets another body or other headers
	Skipped     int64        `json:"skipped"`               // part of Selected that is refused
	Refused     []Count      `json:"refused"`               // by refusal; also those of [Office.Withheld]
	Groups      []PlanGroup  `json:"groups"`                // largest first
	Families    []FamilyView `json:"families,omitempty"`    // whose groups the filter chooses
	ByQueue     []Count      `json:"by_queue"`
	WillNotRun  []Count      `json:"will_not_run,omitempty"` // what a redrive of movable letters leaves out, by its text
	Streams     []Count      `json:"streams"`                // ordered ones with movable letters, as queue/stream; at most [MaxPlanned]
	Token       *nixie.ID    `json:"token"`                  // of the kept selection, null if it was not kept; see [Office.Keep]
	Letters     []nixie.ID   `json:"letters"`                // in the order of the plan, at most [MaxPlanned]
}

// PlanGroup counts the letters of one cause in a plan.
type PlanGroup struct {
	Signature   string `json:"signature"`
	Fingerprint string `json:"fingerprint"`
	Count       int64  `json:"count"`
}

// MaxPlanned limits the letters that a [Plan] names; it counts them all.
const MaxPlanned = 1_000

// Preview shows what Begin and Run would do now, and changes nothing. It applies the same rule as
// the store and makes the edits of w.Edit. Its memory grows with Max, or without Max with
// [MaxPlanned], and with the number of causes, dedupe keys and ordered streams.
func (o *Office) Preview(ctx context.Context, w *OperationRequest) (Plan, error) {
	p, err := o.previewer(ctx, w)
	if err != nil {
		return Plan{}, err
	}
	// The store lists the latest death first and the plan begins with the oldest, so the ring keeps
	// the letters that were read last.
	keep := MaxPlanned
	if w.Max > 0 {
		keep = w.Max
	}
	var ring []planned
	seen := 0
	for l, err := range o.AllLetters(ctx, w.EffectiveFilter(), w.Edit != nil) {
		if err != nil {
			return Plan{}, err
		}
		next := p.planned(&l)
		if err := p.edit(ctx, &l, &next); err != nil {
			return Plan{}, err
		}
		p.add(next, 1)
		if len(ring) < keep {
			ring = append(ring, next)
		} else {
			if w.Max > 0 {
				p.add(ring[seen%keep], -1)
			}
			ring[seen%keep] = next
		}
		seen++
	}
	withheld, err := o.Withheld(ctx, w, p.selected)
	if err != nil {
		return Plan{}, err
	}
	for _, r := range withheld {
		p.refused[strings.TrimPrefix(r.Why, "letter "+r.Letter.String()+" ")]++
	}
	plan := p.plan()
	for i := range min(len(ring), MaxPlanned) {
		plan.Letters = append(plan.Letters, ring[(seen-1-i)%keep].id)
	}
	plan.Letters = orEmpty(plan.Letters)
	return plan, nil
}

// Withheld lists letters that match a redrive and are not selected, because they would be refused:
// those that Max leaves out, if fewer go than it allows, and those in review, if none is selected.
// It lists at most [MaxPlanned].
func (o *Office) Withheld(ctx context.Context, w *OperationRequest, selected int64) (list []redrive.Refusal, err error) {
	named := len(w.IDs) > 0 && w.Picked == nil
	if w.Event != store.OnRedrive || named || selected > 0 && (w.Max == 0 || selected >= int64(w.Max)) {
		return nil, nil
	}
	p, err := o.previewer(ctx, w)
	if err != nil {
		return nil, err
	}
	wide := *w
	wide.Max, wide.IDs = 0, nil
	f := wide.EffectiveFilter()
	if selected == 0 && len(w.Filter.Statuses) == 0 && !w.Force {
		f.Statuses = append(f.Statuses, nixie.StatusReview)
	}
	for l, err := range o.AllLetters(ctx, f, w.Picked != nil) {
		if err != nil || len(list) == MaxPlanned {
			return list, err
		}
		if why := p.engine.Refusal(&p.op, &l); why != "" && (w.Picked == nil || w.Picked(&l)) {
			list = append(list, redrive.Refusal{Letter: l.ID, Why: "letter " + l.ID.String() + " " + why})
		}
	}
	return list, nil
}

// Keep previews, and freezes the selection that it shows. The token of the plan is the operation
// that Run carries out. Run refuses and names a letter that changes before.
func (o *Office) Keep(ctx context.Context, w *OperationRequest) (Plan, error) {
	plan, err := o.Preview(ctx, w)
	if err != nil {
		return plan, err
	}
	guarded := *w
	guarded.Guarded = true
	op, err := o.Begin(ctx, &guarded)
	plan.Token = &op.Operation
	return plan, err
}

// previewer counts the letters of a plan.
type previewer struct {
	request *OperationRequest
	op      store.Operation
	engine  *redrive.Engine
	queues  map[string]nixie.QueueSettings

	selected, skipped, quarantined        int64
	edited                                int64
	groups                                map[string]*PlanGroup
	byQueue, refused, left, streams, keys map[string]int64 // keys counts the movable letters that take a dedupe key
}

func (o *Office) previewer(ctx context.Context, w *OperationRequest) (*previewer, error) {
	engine, err := o.engine(w)
	if err != nil {
		return nil, err
	}
	p := &previewer{
		request: w, op: w.operation(o.actor), engine: engine, queues: map[string]nixie.QueueSettings{},
		groups:  map[string]*PlanGroup{},
		byQueue: map[string]int64{}, refused: map[string]int64{}, left: map[string]int64{}, streams: map[string]int64{},
		keys: map[string]int64{},
	}
	queues, err := o.store.Queues(ctx, store.QueueQuery{Settings: true})
	for _, q := range queues {
		p.queues[q.Name] = q.Settings
	}
	return p, err
}

// planned holds the facts about one letter that a preview counts.
type planned struct {
	id                          nixie.ID
	fingerprint, queue, refusal string
	left                        string // out of its redrive
	key, stream                 string // the dedupe key that it takes, the ordered stream that it enters
	quarantined, edited         bool
}

func (p *previewer) planned(l *nixie.Letter) planned {
	m := &l.Message
	settings := p.queues[m.Queue]
	needsKey := m.DedupeKey != "" && p.request.Send == nil && lifecycle.NeedsKey(p.request.Event, settings.DedupeScope)
	next := planned{id: l.ID, fingerprint: l.Fingerprint, queue: m.Queue, refusal: p.engine.Refusal(&p.op, l)}
	if needsKey && l.KeyTaken && next.refusal == "" {
		next.refusal = keyTaken
	}
	if needsKey {
		next.key = m.Queue + "\x00" + m.DedupeKey
	}
	if m.Stream != "" && settings.Ordered() {
		next.stream = m.Queue + "/" + m.Stream
	}
	if p.request.Send != nil {
		next.left = m.Header(broker.HeaderReview)
	}
	next.quarantined = p.request.SetsAside && p.request.overCap(l)
	if p.groups[l.Fingerprint] == nil {
		p.groups[l.Fingerprint] = &PlanGroup{Signature: l.Signature, Fingerprint: l.Fingerprint}
	}
	return next
}

// edit applies the request's edit to a letter that goes, and notes whether it changes or refuses
// it.
func (p *previewer) edit(ctx context.Context, l *nixie.Letter, next *planned) error {
	if p.request.Edit == nil || p.request.Event != store.OnRedrive || next.refusal != "" {
		return nil
	}
	edit, err := p.request.Edit(ctx, l)
	switch {
	case redrive.Refuses(err):
		next.refusal = "stays: " + err.Error()
	case err != nil:
		return err
	default:
		next.edited = lifecycle.Edited(l.Message.Hash, l.Message.Headers, edit) != ""
	}
	return nil
}

// keyTaken is the refusal of a letter whose dedupe key another message holds.
const keyTaken = "has a dedupe key that another message holds"

// add adds n to the counts of a letter; −1 takes it out again.
func (p *previewer) add(l planned, n int64) {
	p.selected += n
	p.groups[l.fingerprint].Count += n
	p.byQueue[l.queue] += n
	if l.refusal != "" {
		p.skipped += n
		p.refused[l.refusal] += n
		return
	}
	if l.quarantined {
		p.quarantined += n
	}
	if l.edited {
		p.edited += n
	}
	if l.left != "" {
		p.left[l.left] += n
	}
	if l.stream != "" {
		p.streams[l.stream] += n
	}
	if l.key != "" {
		p.keys[l.key] += n
	}
}

func (p *previewer) plan() Plan {
	for _, n := range p.keys { // the first takes the key, and the others are refused
		if n > 1 {
			p.skipped += n - 1
			p.refused[keyTaken] += n - 1
		}
	}
	plan := Plan{
		Selected: p.selected, Movable: p.selected - p.skipped, Quarantined: p.quarantined, Edited: p.edited,
		Skipped: p.skipped,
		Refused: sortedCounts(p.refused), ByQueue: sortedCounts(p.byQueue), Groups: []PlanGroup{}, Families: p.request.Family,
	}
	plan.Streams, plan.WillNotRun = sortedCounts(p.streams), sortedCounts(p.left)
	plan.Streams = plan.Streams[:min(len(plan.Streams), MaxPlanned)]
	for _, g := range p.groups {
		if g.Count > 0 {
			plan.Groups = append(plan.Groups, *g)
		}
	}
	slices.SortFunc(plan.Groups, func(a, b PlanGroup) int {
		return byCount(a.Count, a.Fingerprint, b.Count, b.Fingerprint)
	})
	return plan
}
