package office

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plan is what work would do if it began now.
type Plan struct {
	Selected    int64       `json:"selected"`
	Movable     int64       `json:"movable"`               // of them go
	Quarantined int64       `json:"quarantined,omitempty"` // of those, into quarantine
	Edited      int64       `json:"edited,omitempty"`      // of those, with another body or other headers than they have
	Expired     int64       `json:"expired"`               // of those that a redrive queues: past their ExpiresAt, so they die again unrun
	Skipped     int64       `json:"skipped"`               // of them are refused
	Refused     []Count     `json:"refused"`               // why
	Groups      []PlanGroup `json:"groups"`                // largest first
	ByQueue     []Count     `json:"by_queue"`
	Streams     []Count     `json:"streams"` // ordered ones with letters that go, as queue/stream; at most [MaxPlanned]
	Token       *nixie.ID   `json:"token"`   // of the kept selection, null if none is; see [Office.Keep]
	Letters     []nixie.ID  `json:"letters"` // in the order of the plan, at most [MaxPlanned]
}

// PlanGroup is one cause in a plan.
type PlanGroup struct {
	Signature   string `json:"signature"`
	Fingerprint string `json:"fingerprint"`
	Count       int64  `json:"count"`
}

// MaxPlanned is how many letters a [Plan] names; it counts them all.
const MaxPlanned = 1_000

// Preview tells what Begin and Run would do now, and changes nothing: it asks the
// rule that the store asks, and makes the edits of w.Edit. Memory is bounded by Max, without Max by [MaxPlanned],
// and by how many causes, dedupe keys and ordered streams there are.
func (o *Office) Preview(ctx context.Context, w *OperationRequest) (Plan, error) {
	p, err := o.previewer(ctx, w)
	if err != nil {
		return Plan{}, err
	}
	// Letters come latest death first and the plan begins with the oldest: what
	// was seen last is what the plan has first.
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
	plan := p.plan()
	for i := range min(len(ring), MaxPlanned) {
		plan.Letters = append(plan.Letters, ring[(seen-1-i)%keep].id)
	}
	plan.Letters = orEmpty(plan.Letters)
	return plan, nil
}

// Keep is Preview, and freezes what it shows: the token of the plan is the operation
// that Run carries out. A letter that changes before that is refused and named.
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

// previewer counts what becomes of letters.
type previewer struct {
	work    *OperationRequest
	op      store.Operation
	engine  *redrive.Engine
	expired func(*nixie.Message) bool
	queues  map[string]nixie.QueueSettings

	selected, skipped, aside, late  int64
	edited                          int64
	groups                          map[string]*PlanGroup
	byQueue, refused, streams, keys map[string]int64 // keys: by how many letters that would go want each
}

func (o *Office) previewer(ctx context.Context, w *OperationRequest) (*previewer, error) {
	engine, err := o.engine(w)
	if err != nil {
		return nil, err
	}
	p := &previewer{
		work: w, op: w.operation(o.actor), engine: engine, queues: map[string]nixie.QueueSettings{}, groups: map[string]*PlanGroup{},
		byQueue: map[string]int64{}, refused: map[string]int64{}, streams: map[string]int64{}, keys: map[string]int64{},
	}
	now := o.clock()
	p.expired = func(m *nixie.Message) bool { return !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt) }
	queues, err := o.store.Queues(ctx, store.QueueLook{Settings: true})
	for _, q := range queues {
		p.queues[q.Name] = q.Settings
	}
	return p, err
}

// planned is what a preview keeps of a letter.
type planned struct {
	id                          nixie.ID
	fingerprint, queue, refusal string
	key, stream                 string // that it takes, and that it goes on in
	aside, late, edited         bool
}

func (p *previewer) planned(l *nixie.Letter) planned {
	m := &l.Message
	settings := p.queues[m.Queue]
	needsKey := m.DedupeKey != "" && p.work.Send == nil && lifecycle.NeedsKey(p.work.Event, settings.DedupeScope)
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
	next.aside = p.work.SetsAside && p.work.tired(l)
	next.late = p.work.Event == nixie.OnRedrive && p.work.Send == nil && p.expired(m)
	if p.groups[l.Fingerprint] == nil {
		p.groups[l.Fingerprint] = &PlanGroup{Signature: l.Signature, Fingerprint: l.Fingerprint}
	}
	return next
}

// edit tells what would become of a letter that goes, by the edit of the work.
func (p *previewer) edit(ctx context.Context, l *nixie.Letter, next *planned) error {
	if p.work.Edit == nil || p.work.Event != nixie.OnRedrive || next.refusal != "" {
		return nil
	}
	edit, err := p.work.Edit(ctx, l)
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

// keyTaken is why a letter stays whose dedupe key another message holds.
const keyTaken = "has a dedupe key that another message holds"

// add counts a letter n times more: −1 takes one back.
func (p *previewer) add(l planned, n int64) {
	p.selected += n
	p.groups[l.fingerprint].Count += n
	p.byQueue[l.queue] += n
	if l.refusal != "" {
		p.skipped += n
		p.refused[l.refusal] += n
		return
	}
	if l.aside {
		p.aside += n
	}
	if l.late {
		p.late += n
	}
	if l.edited {
		p.edited += n
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
		Selected: p.selected, Movable: p.selected - p.skipped, Quarantined: p.aside, Edited: p.edited, Expired: p.late, Skipped: p.skipped,
		Refused: counted(p.refused), ByQueue: counted(p.byQueue), Groups: []PlanGroup{},
	}
	plan.Streams = counted(p.streams)
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
