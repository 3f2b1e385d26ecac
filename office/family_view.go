package office

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

// MaxFamily limits the groups that a filter chooses by their families.
const MaxFamily = 1_000

// FamilyView is a set of groups that say the same of different things: they have one reason and
// type, and their labels differ in one or two words. A family is a way to look at groups: nothing
// is stored of it.
type FamilyView struct {
	ID         string       `json:"id"`    // the same as long as what the labels have in common
	Label      string       `json:"label"` // of the groups, with * for the words that differ
	Reason     nixie.Reason `json:"reason"`
	Type       string       `json:"type"`    // of the messages; "" is several
	Groups     int          `json:"groups"`  // those that match
	Count      int64        `json:"count"`   // letters of these
	Differs    []Differing  `json:"differs"` // the words
	Advice     string       `json:"advice"`
	NeedsForce bool         `json:"needs_force"` // a redrive refuses letters of this reason without force
	Filter     string       `json:"filter"`      // chooses the groups, at most [MaxFamily]
}

// Choosable reports whether Filter chooses the family: larger ones need more terms.
func (v *FamilyView) Choosable() bool { return v.Groups <= MaxFamily }

// Differing is a word that differs in the labels of a family.
type Differing struct {
	Name     string   `json:"name"` // of its values, as far as the label tells
	Values   int      `json:"values"`
	Examples []string `json:"examples"` // the first of the values, at most 5
}

// familyExamples limits the values that a family names.
const familyExamples = 5

// Line holds a family, or a group that is in none.
type Line struct {
	Family  *FamilyView // nil is none
	Largest *GroupView  // of the family, or the group
}

// Count returns the number of letters of a line.
func (l *Line) Count() int64 {
	if l.Family != nil {
		return l.Family.Count
	}
	return l.Largest.Count
}

// Lines lists families and the groups that are in none, most letters first.
func (a *Analysis) Lines() []Line { return Lines(a.Groups, a.Families) }

// Lines lists families and those of groups that are in none, most letters first.
func Lines(groups []GroupView, families []FamilyView) []Line {
	by := map[string]*FamilyView{}
	for i := range families {
		by[families[i].ID] = &families[i]
	}
	var lines []Line
	for i := range groups { // the largest first
		g := &groups[i]
		f := by[g.Family]
		if f == nil && g.Family != "" && len(families) > 0 {
			continue // another one stands for it
		}
		delete(by, g.Family)
		lines = append(lines, Line{f, g})
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(b.Count(), a.Count()) })
	return lines
}

// counted is a group with the number of its letters.
type counted struct {
	labelled
	count int64
}

// labels makes groups of counts by label, largest first.
func labels(counts []store.Group) []counted {
	at := make(map[string]int, len(counts))
	groups := make([]counted, 0, len(counts))
	for i := range counts {
		fingerprint, rest, _ := strings.Cut(counts[i].Key, "\n")
		reason, rest, _ := strings.Cut(rest, "\n")
		kind, label, _ := strings.Cut(rest, "\n")
		g := counted{labelled{fingerprint, nixie.Reason(reason), kind, label}, counts[i].Count}
		was, known := at[fingerprint]
		if !known {
			at[fingerprint] = len(groups)
			groups = append(groups, g)
			continue
		}
		groups[was].join(&g)
	}
	order := func(a, b counted) int { return byCount(a.count, a.fingerprint, b.count, b.fingerprint) }
	if !slices.IsSortedFunc(groups, order) {
		slices.SortFunc(groups, order)
	}
	return groups
}

// join adds letters of the same fingerprint. What they do not have in common becomes "".
func (c *counted) join(other *counted) {
	c.count += other.count
	c.label = max(c.label, other.label)
	if c.reason != other.reason {
		c.reason = ""
	}
	if c.kind != other.kind {
		c.kind = ""
	}
}

// found are the families of all groups.
type found struct {
	list []family
	of   map[string]member // by fingerprint
}

// member is a group of a family.
type member struct{ family, group int32 }

// lookedAt has the families that lists of causes show, for some time: to find them costs more than
// all else on a page of a store with very many groups.
type lookedAt struct {
	mu    sync.Mutex
	at    time.Time
	found *found
}

// familiesLast bounds the age of the families that lists of causes show.
const familiesLast = 10 * time.Second

// recentFamilies finds the families, or returns those that were found not long ago.
func (o *Office) recentFamilies(ctx context.Context) (*found, error) {
	o.looked.mu.Lock()
	defer o.looked.mu.Unlock()
	if age := o.clock().Sub(o.looked.at); o.looked.found != nil && age >= 0 && age < familiesLast {
		return o.looked.found, nil
	}
	list, err := o.families(ctx)
	if err != nil {
		return nil, err
	}
	o.looked.at, o.looked.found = o.clock(), newFound(list)
	return o.looked.found, nil
}

func newFound(list []family) *found {
	f := &found{list: list}
	n := 0
	for i := range list {
		n += len(list[i].groups)
	}
	f.of = make(map[string]member, n)
	for i := range list {
		for j, g := range list[i].groups {
			f.of[g.fingerprint] = member{int32(i), int32(j)}
		}
	}
	return f
}

// families finds the families of all groups of the store. What a question asks for changes none, so
// the ID of a family chooses the same groups in each.
func (o *Office) families(ctx context.Context) ([]family, error) {
	counts, _, err := o.store.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByLabel}, Scan: store.ScanAll})
	if err != nil {
		return nil, err
	}
	all := labels(counts[0])
	groups := make([]labelled, len(all))
	for i := range all {
		groups[i] = all[i].labelled
	}
	return families(groups), nil
}

// Fold finds the families among groups that match a filter: those that have at least 8 groups
// there. It notes them in the groups and lists them, most letters first. A filter that names
// fingerprints or a family wants to see each group, so it has none.
func (o *Office) Fold(ctx context.Context, f nixie.Filter, groups []GroupView) ([]FamilyView, error) {
	views := []FamilyView{}
	if len(groups) < familyLeast || len(f.Fingerprints) > 0 {
		return views, nil
	}
	known, err := o.recentFamilies(ctx)
	if err != nil {
		return nil, err
	}
	return known.fold(groups, o.wording), nil
}

// fold notes families in groups and lists those that have enough groups there.
func (known *found) fold(groups []GroupView, words Wording) []FamilyView {
	views := []FamilyView{}
	here := make([][]*GroupView, len(known.list)) // for each family, and each of its groups
	for i := range groups {
		m, is := known.of[groups[i].Fingerprint]
		if !is {
			continue
		}
		if here[m.family] == nil {
			here[m.family] = make([]*GroupView, len(known.list[m.family].groups))
		}
		here[m.family][m.group] = &groups[i]
	}
	for i, groups := range here {
		f := known.list[i].of(func(group int) bool { return groups != nil && groups[group] != nil })
		if len(f.groups) < familyLeast {
			continue
		}
		v := words.family(f)
		for _, g := range groups {
			if g != nil {
				v.Count += g.Count
				g.Family = f.id
			}
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b FamilyView) int { return byCount(a.Count, a.ID, b.Count, b.ID) })
	return views
}

// of returns the family with some of its groups.
func (f *family) of(is func(group int) bool) *family {
	some := &family{id: f.id, open: f.open, values: make([]wordValues, len(f.values))}
	for i := range f.groups {
		if !is(i) {
			continue
		}
		some.groups = append(some.groups, f.groups[i])
		for at := range f.values {
			some.values[at].texts = f.values[at].texts
			some.values[at].of = append(some.values[at].of, f.values[at].of[i])
		}
	}
	return some
}

// family makes the view of a family.
func (w Wording) family(f *family) FamilyView {
	first := f.groups[0]
	v := FamilyView{
		ID: f.id, Label: first.without(f.open), Reason: first.reason, Type: first.kind, Groups: len(f.groups),
		Advice: w.advice(first.reason), NeedsForce: NeedsForce(first.reason), Filter: "family:" + f.id,
	}
	for i := range f.open {
		v.Differs = append(v.Differs, f.differing(i))
	}
	return v
}

// differing names the values of the i-th word that differs.
func (f *family) differing(i int) Differing {
	v := &f.values[i]
	d := Differing{Name: nameOf(strings.Fields(f.groups[0].label), f.open[i])}
	seen := make([]bool, len(v.texts))
	var first []string
	for _, n := range v.of {
		if seen[n] {
			continue
		}
		seen[n] = true
		d.Values++
		if text := v.texts[n]; len(first) < familyExamples || text < first[familyExamples-1] {
			at, _ := slices.BinarySearch(first, text)
			first = slices.Insert(first, at, text)
			first = first[:min(len(first), familyExamples)]
		}
	}
	for _, word := range first {
		d.Examples = append(d.Examples, strings.Trim(word[strings.IndexByte(word, '=')+1:], `.,:;()[]"'`+"`"))
	}
	return d
}

// nameOf names the word with a number: by what it has before =, or by the next word before it that
// says what it is.
func nameOf(words []string, at int) string {
	if name, _, found := strings.Cut(words[at], "="); found {
		return name
	}
	for i := at - 1; i > 0; i-- {
		word := strings.Trim(words[i], `.,:;()[]"'`+"`")
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
			break
		}
		if !slices.Contains(particles, strings.ToLower(word)) {
			return strings.ToLower(word)
		}
	}
	return "word"
}

// particles do not say what the word after them is.
var particles = []string{"a", "an", "and", "at", "by", "for", "from", "in", "is", "no", "not", "of", "on", "or", "the", "to", "with"}

// Resolve replaces the families that a filter names by the fingerprints of those of their groups
// that have letters which match the rest of the filter, and describes them. More than [MaxFamily]
// groups are an error of [nixie.CodeLimit], an unknown family is one of [nixie.CodeNotFound]. The
// end of the ID of an operation is replaced by the ID that [Office.FindOperation] finds.
func (o *Office) Resolve(ctx context.Context, f nixie.Filter) (nixie.Filter, []FamilyView, error) {
	ending := strings.TrimPrefix(filter.Text(nixie.Filter{Operation: f.Operation}), "operation:")
	if _, is := filter.Ending(ending); is {
		op, err := o.FindOperation(ctx, ending)
		if err != nil {
			return f, nil, err
		}
		f.Operation = op.ID
	}
	named := slices.DeleteFunc(slices.Clone(f.Fingerprints), func(s string) bool { return !strings.HasPrefix(s, filter.FamilyPrefix) })
	if len(named) == 0 {
		return f, nil, nil
	}
	all, err := o.families(ctx)
	if err != nil {
		return f, nil, err
	}
	slices.Sort(named)
	var chosen []family
	for _, name := range slices.Compact(named) {
		i := slices.IndexFunc(all, func(known family) bool { return filter.FamilyPrefix+known.id == name })
		if i < 0 {
			return f, nil, nixie.Errorf(nixie.CodeNotFound, o.wording.say("no family has the ID %q now: {causes} shows what there is"),
				strings.TrimPrefix(name, filter.FamilyPrefix))
		}
		chosen = append(chosen, all[i])
	}
	return o.choose(ctx, f, chosen)
}

// choose replaces families by their groups.
func (o *Office) choose(ctx context.Context, f nixie.Filter, chosen []family) (nixie.Filter, []FamilyView, error) {
	rest := f
	rest.Fingerprints = nil
	counts, _, err := o.store.Count(ctx, rest, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Scan: store.ScanAll})
	if err != nil {
		return f, nil, err
	}
	letters := store.Sizes(counts[0])
	asked := f.Fingerprints
	f.Fingerprints = slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return strings.HasPrefix(s, filter.FamilyPrefix) })
	var views []FamilyView
	n := 0
	for i := range chosen {
		groups := chosen[i].groups
		c := chosen[i].of(func(at int) bool { return letters[groups[at].fingerprint] > 0 })
		if len(c.groups) == 0 {
			continue
		}
		v := o.wording.family(c)
		for _, g := range c.groups {
			f.Fingerprints = append(f.Fingerprints, g.fingerprint)
			v.Count += letters[g.fingerprint]
		}
		n += len(c.groups)
		views = append(views, v)
	}
	if n > MaxFamily {
		return f, nil, nixie.Errorf(nixie.CodeLimit,
			"family: the filter chooses %d groups, the limit is %d: add queue:, type: or died: to it", n, MaxFamily)
	}
	if len(f.Fingerprints) == 0 {
		f.Fingerprints = asked // no letter has these; none would ask for all
	}
	return f, views, nil
}
