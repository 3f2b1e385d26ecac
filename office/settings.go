package office

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// byDefault is the value that takes a setting back.
const byDefault = "default"

// setting is one that queue set can change.
type setting struct {
	name, values string
	set          func(q *nixie.QueueSettings, value string) error // "" is the default
}

func settings() []setting {
	return []setting{
		{"lease", "a duration such as 30s", func(q *nixie.QueueSettings, v string) (err error) {
			q.Lease, err = settingSpan(v)
			return err
		}},
		{"dedupe", "active, unresolved or ever", func(q *nixie.QueueSettings, v string) error {
			q.DedupeScope = nixie.DedupeScope(v)
			return nil
		}},
		{"order", "none, strict or relaxed", func(q *nixie.QueueSettings, v string) error {
			q.Order = nixie.Order(v)
			return nil
		}},
		{"dead-head", "block or free", func(q *nixie.QueueSettings, v string) error {
			q.DeadHead = nixie.DeadHead(v)
			return nil
		}},
		{"priority-age", "a duration such as 1h, or none", func(q *nixie.QueueSettings, v string) (err error) {
			if v == "none" {
				q.PriorityAge = -1
				return nil
			}
			q.PriorityAge, err = settingSpan(v)
			return err
		}},
		{"retention", keptValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.Retention, err = settingKept(v)
			return err
		}},
		{"letter-retention", keptValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.LetterRetention, err = settingKept(v)
			return err
		}},
		{"audit-retention", keptValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.AuditRetention, err = settingKept(v)
			return err
		}},
	}
}

const keptValues = "a duration such as 30d, or forever"

// settingKept reads how long something is kept.
func settingKept(v string) (time.Duration, error) {
	switch v {
	case "":
		return 0, nil
	case "forever":
		return nixie.Forever, nil
	}
	return filter.ParseDuration(v)
}

// SettingNames lists what [ParseSettings] knows, each with the values it takes.
func SettingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name+"="+s.values)
	}
	for _, o := range policy.Options() {
		names = append(names, o.Name+"="+o.Value)
	}
	return names
}

// SettingsEdit is some settings with the values that they are to have.
type SettingsEdit struct {
	text   string
	edits  []func(*nixie.QueueSettings) error
	policy policyEdit
}

// ParseSettings reads settings written NAME=VALUE; the value default takes one
// back. Errors are of [nixie.CodeInvalid] and name what there is.
func ParseSettings(pairs []string) (SettingsEdit, error) {
	e := SettingsEdit{text: strings.Join(pairs, " "), policy: policyEdit{}}
	var seen []string
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == name })
		switch {
		case !ok || value == "":
			return e, nixie.Errorf(nixie.CodeInvalid,
				"setting %q has no value: write NAME=VALUE, such as lease=1m, or lease=default to take it back", pair)
		case isPolicy(name):
			if err := e.policy.add(name, value); err != nil {
				return e, err
			}
			continue
		case i < 0:
			return e, nixie.Errorf(nixie.CodeInvalid, "no setting is called %q: there are %s", name, strings.Join(SettingNames(), "; "))
		case slices.Contains(seen, name):
			return e, nixie.Errorf(nixie.CodeInvalid, "setting %s is given twice: give it once", name)
		}
		if value == byDefault {
			value = ""
		}
		s := settings()[i]
		var trial nixie.QueueSettings
		if err := s.set(&trial, value); err != nil {
			return e, nixie.Errorf(nixie.CodeInvalid, "setting %s is %q: give %s", name, value, s.values)
		}
		seen = append(seen, name)
		e.edits = append(e.edits, func(q *nixie.QueueSettings) error { return s.set(q, value) })
	}
	if len(e.edits)+len(e.policy) == 0 {
		return e, nixie.Errorf(nixie.CodeInvalid, "no setting is given: there are %s", strings.Join(SettingNames(), "; "))
	}
	return e, nil
}

func settingSpan(v string) (time.Duration, error) {
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err == nil && d <= 0 {
		err = nixie.Errorf(nixie.CodeInvalid, "not a positive duration")
	}
	return d, err
}

// SettingsView is what is set for a queue: what queue show, set, pause and
// resume print. Every value is the one that holds; Defaults names those that
// nobody set.
type SettingsView struct {
	Queue       string            `json:"queue"`
	Paused      bool              `json:"paused"`
	PausedNote  string            `json:"paused_note"`
	Closed      bool              `json:"closed"`
	ClosedNote  string            `json:"closed_note"`
	Lease       string            `json:"lease"`
	Dedupe      nixie.DedupeScope `json:"dedupe"`
	Order       nixie.Order       `json:"order"`
	DeadHead    nixie.DeadHead    `json:"dead_head"`
	PriorityAge string            `json:"priority_age"`

	Retention       string `json:"retention"`        // of ended messages without a letter
	LetterRetention string `json:"letter_retention"` // of resolved and discarded letters
	AuditRetention  string `json:"audit_retention"`

	Policy []string `json:"policy"` // options of workers without one of their own, NAME=VALUE

	Defaults   []string  `json:"defaults"`
	ChangedAt  Timestamp `json:"changed_at"` // the newest change of a setting
	ChangedBy  string    `json:"changed_by"`
	ChangedWhy string    `json:"changed_why"`
}

// SettingsChange is what a verb made of the settings of a queue.
type SettingsChange struct {
	SettingsView
	Changed bool `json:"changed"` // false: it was so before
}

func viewSettings(queue string, q nixie.QueueSettings) SettingsView {
	v := SettingsView{
		Queue: queue, Paused: q.Paused, PausedNote: q.PausedNote, Closed: q.Closed, ClosedNote: q.ClosedNote,
		Lease: q.LeaseOrDefault().String(), Dedupe: q.DedupeScope, Order: q.Order, DeadHead: q.DeadHead,
		PriorityAge: q.PriorityAge.String(), Policy: policyLines(q), Defaults: []string{},
	}
	missing := func(is bool, name string, fill func()) {
		if is {
			v.Defaults = append(v.Defaults, name)
			fill()
		}
	}
	missing(q.Lease == 0, "lease", func() {})
	missing(q.DedupeScope == "", "dedupe", func() { v.Dedupe = nixie.DedupeActive })
	missing(q.Order == "", "order", func() { v.Order = nixie.OrderNone })
	missing(q.DeadHead == "", "dead-head", func() { v.DeadHead = nixie.DeadBlocks })
	missing(q.PriorityAge == 0, "priority-age", func() { v.PriorityAge = nixie.DefaultPriorityAge.String() })
	if q.PriorityAge < 0 {
		v.PriorityAge = "none"
	}
	messages, letters, audit := q.Kept()
	missing(q.Retention == 0, "retention", func() {})
	missing(q.LetterRetention == 0, "letter-retention", func() {})
	missing(q.AuditRetention == 0, "audit-retention", func() {})
	missing(q.Policy == "", "policy", func() {})
	v.Retention, v.LetterRetention, v.AuditRetention = kept(messages), kept(letters), kept(audit)
	return v
}

// Settings shows what is set for a queue, and who changed it last.
func (o *Office) Settings(ctx context.Context, queue string) (SettingsView, error) {
	q, err := o.Queue(ctx, queue)
	if err != nil {
		return SettingsView{}, err
	}
	v := viewSettings(queue, q.Settings)
	last, _, err := o.store.Audit(ctx, store.AuditFilter{Queues: []string{queue}, Events: []nixie.Event{nixie.OnConfigure}},
		store.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return v, err
	}
	v.ChangedAt, v.ChangedBy, v.ChangedWhy = Timestamp{last[0].At}, last[0].Actor, last[0].Reason
	return v, nil
}

// Set changes some settings of a queue and leaves the others as they are,
// whatever others change meanwhile. It makes a queue that does not exist.
func (o *Office) Set(ctx context.Context, queue string, e SettingsEdit, reason string) (SettingsChange, error) {
	return o.adjust(ctx, queue, e.text+": "+reason, reason, func(q *nixie.QueueSettings) error {
		for _, edit := range e.edits {
			if err := edit(q); err != nil {
				return err
			}
		}
		return e.policy.apply(q)
	})
}

// Pause stops the handing out of queues, all of which have to exist: their
// workers find nothing from their next poll on, what is leased goes on. A queue
// that is paused stays so, with its note.
func (o *Office) Pause(ctx context.Context, queues []string, reason string) ([]SettingsChange, error) {
	return o.adjustAll(ctx, queues, "pause: "+reason, reason, func(q *nixie.QueueSettings) error {
		if !q.Paused {
			q.Paused, q.PausedNote = true, o.note(reason)
		}
		return nil
	})
}

// Resume takes a pause, a halt and a closing of queues back.
func (o *Office) Resume(ctx context.Context, queues []string, reason string) ([]SettingsChange, error) {
	return o.adjustAll(ctx, queues, "resume: "+reason, reason, func(q *nixie.QueueSettings) error {
		q.Paused, q.PausedNote, q.Closed, q.ClosedNote = false, "", false, ""
		return nil
	})
}

// note is what a queue says of why it is paused or closed.
func (o *Office) note(reason string) string { return reason + ", " + o.actor }

func (o *Office) adjustAll(ctx context.Context, queues []string, entry, reason string, edit func(*nixie.QueueSettings) error) (
	[]SettingsChange, error) {
	if _, err := o.queues(ctx, queues); err != nil {
		return nil, err
	}
	changes := []SettingsChange{}
	for _, name := range queues {
		c, err := o.adjust(ctx, name, entry, reason, edit)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (o *Office) adjust(ctx context.Context, queue, entry, reason string, edit func(*nixie.QueueSettings) error) (SettingsChange, error) {
	if err := checkReason(reason); err != nil {
		return SettingsChange{}, err
	}
	changed := false
	now, err := o.store.Adjust(ctx, queue, o.actor, entry, func(q *nixie.QueueSettings) error {
		before := *q
		err := edit(q)
		changed = *q != before
		return err
	})
	if err != nil {
		return SettingsChange{}, err
	}
	if !changed {
		v, err := o.Settings(ctx, queue)
		return SettingsChange{v, false}, err
	}
	c := SettingsChange{viewSettings(queue, now), true}
	c.ChangedAt, c.ChangedBy, c.ChangedWhy = Timestamp{o.clock()}, o.actor, entry
	return c, nil
}

// checkReason wants to know why something is done, in bounds.
func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded")
	case len(reason) > nixie.MaxReason:
		return nixie.Errorf(nixie.CodeLimit, "reason has %d bytes, the limit is %d: shorten it", len(reason), nixie.MaxReason)
	}
	return nil
}
