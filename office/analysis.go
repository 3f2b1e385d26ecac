package office

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Analysis is why letters died: what dlq analyze prints.
type Analysis struct {
	Letters  int64         `json:"letters"`   // how many it is about
	LookedAt *store.Looked `json:"looked_at"` // null: at all that may match
	Groups   []GroupView   `json:"groups"`    // one cause each, largest first
	ByReason []Count       `json:"by_reason"`
	ByType   []Count       `json:"by_type"` // of the message
	ByQueue  []Count       `json:"by_queue"`
	ByHour   []Count       `json:"by_hour"` // of death, UTC, earliest first
}

// GroupView is a set of letters with one cause.
type GroupView struct {
	Signature   string       `json:"signature"`
	Fingerprint string       `json:"fingerprint"`
	Count       int64        `json:"count"`
	Reason      nixie.Reason `json:"reason"`
	FirstAt     Timestamp    `json:"first_died_at"`
	LastAt      Timestamp    `json:"last_died_at"`
	Examples    []nixie.ID   `json:"examples"`
	Keys        []string     `json:"example_keys"` // of their messages, in the same order
	Text        string       `json:"example_text"` // what the failure of the first of them said
	Advice      string       `json:"advice"`
	NeedsForce  bool         `json:"needs_force"` // letters of this reason are not redriven without force
	Filter      string       `json:"filter"`      // chooses the group
}

// Count is how many letters share a value.
type Count struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Analyze counts the letters that match by what they died of.
func (o *Office) Analyze(ctx context.Context, f nixie.Filter, look store.Look) (Analysis, error) {
	described, looked, err := o.store.Count(ctx, f, store.Counting{By: []nixie.GroupBy{nixie.ByFingerprint}, Look: look, Described: true})
	if err != nil {
		return Analysis{}, err
	}
	groups := described[0]
	a := Analysis{Groups: make([]GroupView, 0, len(groups)), LookedAt: orNull(looked)}
	for _, g := range groups {
		a.Letters += g.Count
		a.Groups = append(a.Groups, GroupView{
			Signature: g.Label, Fingerprint: g.Key, Count: g.Count, Reason: g.Reason,
			FirstAt: Timestamp{g.FirstAt}, LastAt: Timestamp{g.LastAt}, Examples: orEmpty(g.Examples),
			Advice: Advice(g.Reason), NeedsForce: NeedsForce(g.Reason), Filter: filter.Text(nixie.Filter{Fingerprint: g.Key}),
		})
	}
	if err := o.nameExamples(ctx, a.Groups); err != nil {
		return Analysis{}, err
	}
	counts, _, err := o.store.Count(ctx, f,
		store.Counting{By: []nixie.GroupBy{nixie.ByReason, nixie.ByType, nixie.ByQueue, nixie.ByHour}, Look: look})
	if err != nil {
		return Analysis{}, err
	}
	for i, into := range [...]*[]Count{&a.ByReason, &a.ByType, &a.ByQueue, &a.ByHour} {
		*into = countsOf(counts[i])
	}
	sortCounts(a.ByHour)
	return a, nil
}

// orNull leaves out what would say that all were looked at.
func orNull(l store.Looked) *store.Looked {
	if l.All() {
		return nil
	}
	return &l
}

// nameExamples finds the keys of the messages of examples, by which people know them,
// and what one of them says. It asks for the examples of many groups at once.
func (o *Office) nameExamples(ctx context.Context, groups []GroupView) error {
	for part := range slices.Chunk(groups, groupsNamed) {
		var ids []nixie.ID
		for _, g := range part {
			ids = append(ids, g.Examples...)
		}
		if len(ids) == 0 {
			continue // no IDs would mean all letters
		}
		keys, texts := map[nixie.ID]string{}, map[nixie.ID]string{}
		for l, err := range o.AllLetters(ctx, nixie.Filter{IDs: ids}, false) {
			if err != nil {
				return err
			}
			keys[l.ID], texts[l.ID] = l.Message.Key, l.Message.LastFailure
		}
		for i, g := range part {
			part[i].Keys = make([]string, len(g.Examples))
			for j, id := range g.Examples {
				part[i].Keys[j] = keys[id]
			}
			if len(g.Examples) > 0 {
				part[i].Text = texts[g.Examples[0]]
			}
		}
	}
	return nil
}

// groupsNamed is how many groups' examples are looked up at once.
const groupsNamed = 200

func countsOf(groups []nixie.Group) []Count {
	list := make([]Count, 0, len(groups))
	for _, g := range groups {
		list = append(list, Count{g.Key, g.Count})
	}
	return list
}

// NeedsForce reports whether letters of a reason are redriven with force only.
func NeedsForce(r nixie.Reason) bool {
	return slices.ContainsFunc(policy.Triages(), func(t policy.Triage) bool {
		return t.Reason == r && (!t.Redrivable || t.NeedsReview)
	})
}

// Advice is what usually helps against a reason.
func Advice(r nixie.Reason) string {
	switch r {
	case nixie.ReasonTransportUnavailable, nixie.ReasonDependency:
		return "see that what it depends on is up again, then redrive"
	case nixie.ReasonTimeout:
		return "find what is slow or raise the timeout, then redrive"
	case nixie.ReasonThrottled:
		return "redrive slowly, with --rate"
	case nixie.ReasonResource:
		return "give it memory, disk or fewer neighbours, then redrive"
	case nixie.ReasonValidation, nixie.ReasonSerialization:
		return "mend the producer or the handler; the same bytes fail again, so discard or redrive with --force after a fix"
	case nixie.ReasonPoison, nixie.ReasonPanic:
		return "mend the handler: this input ends it; then redrive one letter first (poison needs --force)"
	case nixie.ReasonAuth:
		return "renew credentials or permissions, then redrive with --force"
	case nixie.ReasonPolicy:
		return "look at the rule that refused it, then redrive with --force or discard"
	case nixie.ReasonMaxAge:
		return "too old to be of use: look, then discard or redrive with --force"
	case nixie.ReasonWorktree, nixie.ReasonMergeConflict, nixie.ReasonNoCommit:
		return "look at the worktree that was kept, then redrive"
	case nixie.ReasonLeaseExpired, nixie.ReasonCanceled:
		return "the worker went away: redrive"
	case nixie.ReasonUnknown, nixie.ReasonHandler, nixie.ReasonCommandFailed:
		return "read one example's output, mend the cause, then redrive"
	}
	return "look at the examples: they died of different reasons"
}
