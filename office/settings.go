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

// defaultValue resets a setting to its default.
const defaultValue = "default"

// setting describes a setting that queue set can change.
type setting struct {
	name, values string
	set          func(q *nixie.QueueSettings, value string) error // "" means the default
}

func settings() []setting {
	return []setting{
		{"lease", "a duration such as 30s", func(q *nixie.QueueSettings, v string) (err error) {
			q.Lease, err = parsePositiveDuration(v)
			return err
		}},
		{"dedupe", "queued, active, unresolved or ever", func(q *nixie.QueueSettings, v string) error {
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
		{"dead-letter-to", "a queue, or none", func(q *nixie.QueueSettings, v string) error {
			q.DeadLetterTo = v
			if v == "none" {
				q.DeadLetterTo = ""
			}
			return nil
		}},
		{"priority-age", "a duration such as 1h, or none", func(q *nixie.QueueSettings, v string) (err error) {
			if v == "none" {
				q.PriorityAge = -1
				return nil
			}
			q.PriorityAge, err = parsePositiveDuration(v)
			return err
		}},
		{"retention", retentionValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.Retention, err = parseRetention(v)
			return err
		}},
		{"letter-retention", retentionValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.LetterRetention, err = parseRetention(v)
			return err
		}},
		{"audit-retention", retentionValues, func(q *nixie.QueueSettings, v string) (err error) {
			q.AuditRetention, err = parseRetention(v)
			return err
		}},
	}
}

const retentionValues = "a duration such as 30d, or forever"

// parseRetention reads a retention.
func parseRetention(v string) (time.Duration, error) {
	switch v {
	case "":
		return 0, nil
	case "forever":
		return nixie.Forever, nil
	}
	return filter.ParseDuration(v)
}

// SettingNames lists the settings that [ParseSettings] knows, each with the values it takes.
func SettingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name+"="+s.values)
	}
	for _, o := range policy.DocumentOptions() {
		names = append(names, o.Name+"="+o.Value)
	}
	return names
}

// SettingsEdit holds settings with their new values.
type SettingsEdit struct {
	text   string
	edits  []func(*nixie.QueueSettings) error
	policy policyEdit
}

// ParseSettings reads settings written NAME=VALUE; the value default resets one. Errors are of
// [nixie.CodeInvalid] and list the settings there are.
func ParseSettings(pairs []string) (SettingsEdit, error) {
	e := SettingsEdit{text: strings.Join(pairs, " "), policy: policyEdit{}}
	var seen []string
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == name })
		switch {
		case !ok || value == "":
			return e, nixie.Errorf(nixie.CodeInvalid,
				"setting %q has no value: write NAME=VALUE, such as lease=1m, or lease=default to reset it", pair)
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
		if value == defaultValue {
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

func parsePositiveDuration(v string) (time.Duration, error) {
	if v == "" {
		return 0, nil
	}
	d, err := filter.ParseDuration(v)
	if err == nil && d <= 0 {
		err = nixie.Errorf(nixie.CodeInvalid, "not a positive duration")
	}
	return d, err
}

// SettingsView shows the settings of a queue. Queue show, set, pause and resume print it. Each
// value is the effective one; Defaults names the settings that have their default.
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

	DeadLetterTo string `json:"dead_letter_to"` // the queue that hears of deaths; empty is none

	Retention       string `json:"retention"`        // of ended messages without a letter
	LetterRetention string `json:"letter_retention"` // of resolved and discarded letters
	AuditRetention  string `json:"audit_retention"`

	Policy []string `json:"policy"` // for workers without a policy of their own, NAME=VALUE

	Defaults   []string  `json:"defaults"`
	ChangedAt  Timestamp `json:"changed_at"` // the newest change of a setting
	ChangedBy  string    `json:"changed_by"`
	ChangedWhy string    `json:"changed_why"`
}

// SettingsChange shows the settings of a queue after a verb.
type SettingsChange struct {
	SettingsView
	Changed bool `json:"changed"` // false: they were so before
}

func viewSettings(queue string, q nixie.QueueSettings) SettingsView {
	v := SettingsView{
		Queue: queue, Paused: q.Paused, PausedNote: q.PausedNote, Closed: q.Closed, ClosedNote: q.ClosedNote,
		Lease: q.LeaseOrDefault().String(), Dedupe: q.DedupeScope, Order: q.Order, DeadHead: q.DeadHead,
		DeadLetterTo: q.DeadLetterTo, PriorityAge: q.PriorityAge.String(), Policy: policyLines(q), Defaults: []string{},
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
	missing(q.DeadLetterTo == "", "dead-letter-to", func() {})
	missing(q.PriorityAge == 0, "priority-age", func() { v.PriorityAge = nixie.DefaultPriorityAge.String() })
	if q.PriorityAge < 0 {
		v.PriorityAge = "none"
	}
	messages, letters, audit := q.Kept()
	missing(q.Retention == 0, "retention", func() {})
	missing(q.LetterRetention == 0, "letter-retention", func() {})
	missing(q.AuditRetention == 0, "audit-retention", func() {})
	missing(q.Policy == "", "policy", func() {})
	v.Retention, v.LetterRetention, v.AuditRetention = retentionText(messages), retentionText(letters), retentionText(audit)
	return v
}

// Settings shows the settings of a queue and their last change.
func (o *Office) Settings(ctx context.Context, queue string) (SettingsView, error) {
	settings, err := o.QueueSettings(ctx, queue)
	if err != nil {
		return SettingsView{}, err
	}
	v := viewSettings(queue, settings)
	last, _, err := o.store.Audit(ctx, store.AuditFilter{Queues: []string{queue}, Events: []store.Event{store.OnConfigure}},
		store.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return v, err
	}
	v.ChangedAt, v.ChangedBy, v.ChangedWhy = Timestamp{last[0].At}, last[0].Actor, last[0].Reason
	return v, nil
}

// Set changes some settings of a queue and leaves the others as they are, also when another process
// changes those at the same time. It makes a queue that does not exist.
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

// Pause stops the claims of queues, all of which must exist. From their next poll on workers find
// nothing; leased messages go on. A queue that was paused before keeps its note.
func (o *Office) Pause(ctx context.Context, queues []string, reason string) ([]SettingsChange, error) {
	return o.adjustAll(ctx, queues, "pause: "+reason, reason, func(q *nixie.QueueSettings) error {
		if !q.Paused {
			q.Paused, q.PausedNote, q.PausedAt = true, o.note(reason), o.clock().UTC().Round(0)
		}
		return nil
	})
}

// Resume ends the pause, the halt and the closing of queues.
func (o *Office) Resume(ctx context.Context, queues []string, reason string) ([]SettingsChange, error) {
	return o.adjustAll(ctx, queues, "resume: "+reason, reason, func(q *nixie.QueueSettings) error {
		q.Paused, q.PausedNote, q.PausedAt = false, "", time.Time{}
		q.Closed, q.ClosedNote = false, ""
		return nil
	})
}

// note makes the text that a paused or closed queue shows.
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

// checkReason refuses an empty reason and one that is too long.
func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded")
	case len(reason) > nixie.MaxReason:
		return nixie.Errorf(nixie.CodeLimit, "reason has %d bytes, the limit is %d: shorten it", len(reason), nixie.MaxReason)
	}
	return nil
}
