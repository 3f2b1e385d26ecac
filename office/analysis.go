package office

import (
	"context"
	"math"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Analysis counts letters by cause. Dlq analyze prints it.
type Analysis struct {
	Letters  int64           `json:"letters"`   // all that it counts
	Coverage *store.Coverage `json:"looked_at"` // null: all that may match were counted
	Groups   []GroupView     `json:"groups"`    // one cause each, largest first
	Families []FamilyView    `json:"families"`  // of these groups, most letters first
	ByReason []Count         `json:"by_reason"`
	ByType   []Count         `json:"by_type"` // of the message
	ByQueue  []Count         `json:"by_queue"`
	ByHour   []Count         `json:"by_hour"` // of death, UTC, earliest first
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
	Text        string       `json:"example_text"` // the last failure of the first example
	Advice      string       `json:"advice"`
	NeedsForce  bool         `json:"needs_force"` // a redrive refuses letters of this reason without force
	Filter      string       `json:"filter"`      // chooses the group
	Family      string       `json:"family"`      // ID of the one that it is in; "" is none
	DiedAgain   *DiedAgain   `json:"died_again"`  // the newest example was redriven before; else null
}

// DiedAgain is the redrive after which a letter died again.
type DiedAgain struct {
	Operation nixie.ID  `json:"operation"`
	Reason    string    `json:"reason"` // that the operator gave
	At        Timestamp `json:"at"`     // when the operation began
}

// Count counts the letters that share a value.
type Count struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Analyze groups the letters that match by cause.
func (o *Office) Analyze(ctx context.Context, f nixie.Filter, scan store.Scan) (Analysis, error) {
	return o.AnalyzeLargest(ctx, f, scan, math.MaxInt)
}

// AnalyzeLargest is Analyze for who shows the first of [Analysis.Lines]: the groups of the others
// have no times and no examples, which cost most where groups are very many.
func (o *Office) AnalyzeLargest(ctx context.Context, f nixie.Filter, scan store.Scan, lines int) (a Analysis, err error) {
	by := []store.GroupBy{store.ByLabel, store.ByReason, store.ByType, store.ByQueue, store.ByHour}
	counts, coverage, err := o.store.Count(ctx, f, store.Counting{By: by, Scan: scan})
	if err != nil {
		return a, err
	}
	a.Coverage = partialCoverage(coverage)
	for i, into := range [...]*[]Count{&a.ByReason, &a.ByType, &a.ByQueue, &a.ByHour} {
		*into = groupCounts(counts[1+i])
	}
	sortCounts(a.ByHour)
	causes := labels(counts[0])
	a.Groups = make([]GroupView, len(causes))
	for i := range causes {
		g := &causes[i]
		a.Letters += g.count
		a.Groups[i] = GroupView{Fingerprint: g.fingerprint, Signature: g.label, Reason: g.reason, Count: g.count,
			Examples: []nixie.ID{}, Keys: []string{}}
	}
	if a.Families, err = o.Fold(ctx, f, a.Groups); err != nil {
		return a, err
	}
	return a, o.describe(ctx, f, scan, &a, lines)
}

// describe adds times and examples to the groups of the first lines.
func (o *Office) describe(ctx context.Context, f nixie.Filter, scan store.Scan, a *Analysis, lines int) error {
	at := map[string]*GroupView{}
	if lines != math.MaxInt && len(a.Groups) > 0 { // a filter of no fingerprints would ask for all
		all := a.Lines()
		f.Fingerprints = nil
		for _, l := range all[:min(lines, len(all))] {
			f.Fingerprints = append(f.Fingerprints, l.Largest.Fingerprint)
			at[l.Largest.Fingerprint] = l.Largest
		}
	} else {
		for i := range a.Groups {
			at[a.Groups[i].Fingerprint] = &a.Groups[i]
		}
	}
	groups, _, err := o.groups(ctx, f, scan)
	if err == nil {
		err = o.AddExamples(ctx, groups)
	}
	for _, g := range groups {
		if is := at[g.Fingerprint]; is != nil { // else its first letter died meanwhile
			g.Count, g.Family = is.Count, is.Family
			*is = g
		}
	}
	return err
}

// Groups lists the causes of the letters that match, largest first, without the facts that
// [Office.AddExamples] adds. It covers the newest letters only where the filter asks for something
// that has no counters; nil says that it covers all.
func (o *Office) Groups(ctx context.Context, f nixie.Filter) ([]GroupView, *store.Coverage, error) {
	return o.groups(ctx, f, store.ScanRecent)
}

func (o *Office) groups(ctx context.Context, f nixie.Filter, scan store.Scan) ([]GroupView, *store.Coverage, error) {
	described, coverage, err := o.store.Count(ctx, f, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Scan: scan, Described: true})
	if err != nil {
		return nil, nil, err
	}
	groups := make([]GroupView, 0, len(described[0]))
	for _, g := range described[0] {
		groups = append(groups, o.wording.group(&g))
	}
	return groups, partialCoverage(coverage), nil
}

// group makes the view of a group, without the facts that [Office.AddExamples] adds.
func (w Wording) group(g *store.Group) GroupView {
	return GroupView{
		Signature: g.Label, Fingerprint: g.Key, Count: g.Count, Reason: g.Reason,
		FirstAt: Timestamp{g.FirstAt}, LastAt: Timestamp{g.LastAt}, Examples: orEmpty(g.Examples),
		Advice: w.advice(g.Reason), NeedsForce: NeedsForce(g.Reason),
		Filter: filter.Text(nixie.Filter{Fingerprints: []string{g.Key}}),
	}
}

// CountBy counts the letters that match by each property, largest count first, as far as
// [Office.Groups] does.
func (o *Office) CountBy(ctx context.Context, f nixie.Filter, by ...store.GroupBy) ([][]Count, *store.Coverage, error) {
	groups, coverage, err := o.store.Count(ctx, f, store.Counting{By: by})
	lists := make([][]Count, len(groups))
	for i := range groups {
		lists[i] = groupCounts(groups[i])
	}
	return lists, partialCoverage(coverage), err
}

// partialCoverage returns nil when the answer covers all letters.
func partialCoverage(l store.Coverage) *store.Coverage {
	if l.All() {
		return nil
	}
	return &l
}

// AddExamples adds the keys of the example letters' messages, and of the first one the last failure
// and the redrive after which it died again. It reads the examples of many groups in one call.
func (o *Office) AddExamples(ctx context.Context, groups []GroupView) error {
	for part := range slices.Chunk(groups, groupsNamed) {
		var ids []nixie.ID
		for _, g := range part {
			ids = append(ids, g.Examples...)
		}
		if len(ids) == 0 {
			continue // no IDs would mean all letters
		}
		keys, texts, moved := map[nixie.ID]string{}, map[nixie.ID]string{}, map[nixie.ID]nixie.ID{}
		for l, err := range o.AllLetters(ctx, nixie.Filter{IDs: ids}, false) {
			if err != nil {
				return err
			}
			keys[l.ID], texts[l.ID] = l.Message.Key, l.Message.LastFailure
			if l.Message.Redrives > 0 && l.Status != nixie.StatusRedriving {
				moved[l.ID] = l.Operation
			}
		}
		for i, g := range part {
			part[i].Keys = make([]string, len(g.Examples))
			for j, id := range g.Examples {
				part[i].Keys[j] = keys[id]
			}
			if len(g.Examples) == 0 {
				continue
			}
			part[i].Text = texts[g.Examples[0]]
			if by := moved[g.Examples[0]]; !by.IsZero() {
				op, err := o.Operation(ctx, by)
				if err != nil && nixie.CodeOf(err) != nixie.CodeNotFound {
					return err
				}
				if op.Event == store.OnRedrive {
					part[i].DiedAgain = &DiedAgain{op.ID, op.Reason, Timestamp{op.CreatedAt}}
				}
			}
		}
	}
	return nil
}

// groupsNamed is the number of groups whose examples one call reads.
const groupsNamed = 200

func groupCounts(groups []store.Group) []Count {
	list := make([]Count, 0, len(groups))
	for _, g := range groups {
		list = append(list, Count{g.Key, g.Count})
	}
	return list
}

// NeedsForce reports whether a redrive refuses letters of a reason without force.
func NeedsForce(r nixie.Reason) bool {
	return slices.ContainsFunc(policy.Triages(), func(t policy.Triage) bool {
		return t.Reason == r && (!t.Redrivable || t.NeedsReview)
	})
}

// LastWorkers counts the newest letters that match by the worker whose failure was their last, most
// first. It reads up to limit letters whole, and returns how many it read.
func (o *Office) LastWorkers(ctx context.Context, f nixie.Filter, limit int) (counts []Count, read int, err error) {
	list, _, err := o.store.Letters(ctx, f, store.Page{Limit: limit, Whole: true})
	by := map[string]int64{}
	for i := range list {
		worker := ""
		if h := list[i].History; len(h) > 0 {
			worker = h[len(h)-1].Worker
		}
		by[worker]++
	}
	return sortedCounts(by), len(list), err
}
