package office

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFamiliesOfGroups has families as a person would make them.
func TestFamiliesOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		labels func(add func(string, ...any))
		want   []string
	}{
		"one position": {func(add func(string, ...any)) {
			for i := range 8 {
				add("timeout: no answer of host %s yet", word(i))
			}
		}, []string{"8 timeout: no answer of host * yet"}},
		"too few": {func(add func(string, ...any)) {
			for i := range 7 {
				add("timeout: no answer of host %s yet", word(i))
			}
			add("timeout: no answer of the host %s yet", word(7))
		}, nil},
		"two positions": {func(add func(string, ...any)) {
			for i := range 9 {
				add("timeout: host %s is away from %s", word(i), word(i+20))
			}
		}, []string{"9 timeout: host * is away from *"}},
		"two positions, few values": {func(add func(string, ...any)) {
			for i := range 8 {
				add("timeout: host %s is away from %s", word(i/4), word(i%4))
			}
		}, []string{"8 timeout: host * is away from *"}},
		"three positions": {func(add func(string, ...any)) {
			for i := range 20 {
				add("timeout: host %s is %s from %s", word(i), word(i+20), word(i+40))
			}
		}, nil},
		"a grid": {func(add func(string, ...any)) {
			for i := range 100 {
				add("timeout: host %s is away from %s", word(i/10), word(i%10))
			}
		}, []string{"100 timeout: host * is away from *"}},
		"two errors of many users": {func(add func(string, ...any)) {
			for i := range 40 {
				add("handler: user %s is not %s", word(i/2), [...]string{"known", "allowed"}[i%2])
			}
		}, []string{"20 handler: user * is not allowed", "20 handler: user * is not known"}},
		"another error of few users": {func(add func(string, ...any)) {
			for i := range 12 {
				add("handler: user %s is not known", word(i))
			}
			for i := range 5 {
				add("handler: user %s is not allowed", word(i))
			}
		}, []string{"12 handler: user * is not known"}},
		"the same label": {func(add func(string, ...any)) {
			for range 20 {
				add("handler: it is wrong")
			}
		}, nil},
	} {
		var groups []labelled
		c.labels(func(form string, args ...any) {
			groups = append(groups, labelled{fingerprint: fmt.Sprint("f", len(groups)), reason: "timeout",
				label: fmt.Sprintf(form, args...)})
		})
		var got []string
		for _, f := range families(groups) {
			got = append(got, fmt.Sprint(len(f.groups), " ", f.groups[0].without(f.open)))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: families %q, want %q", name, got, c.want)
		}
	}
}

// Groups of other reasons or types are in no family with these.
func TestFamiliesAreOfOneReasonAndType(t *testing.T) {
	var groups []labelled
	for i := range 28 {
		g := labelled{fingerprint: word(i), reason: "timeout", kind: "ship", label: "no answer of host " + word(i)}
		switch {
		case i >= 21:
			g.kind = "pay"
		case i >= 14:
			g.reason = "auth"
		case i >= 7:
			g.kind = ""
		}
		groups = append(groups, g)
	}
	if got := families(groups); len(got) > 0 {
		t.Errorf("families %v", got)
	}
	groups[27].kind = "ship"
	if got := families(groups); len(got) != 1 || len(got[0].groups) != 8 {
		t.Errorf("families %v", got)
	}
}

func word(i int) string { return strings.Repeat(string(rune('a'+i%26)), 1+i/26) }

// TestFamiliesHold looks at families of random groups.
func TestFamiliesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positions := rapid.IntRange(1, 5).Draw(t, "words")
		values := rapid.SliceOfN(rapid.IntRange(1, 12), positions, positions).Draw(t, "values")
		groups := make([]labelled, rapid.IntRange(0, 120).Draw(t, "groups"))
		for i := range groups {
			words := make([]string, positions)
			for at := range words {
				words[at] = word(rapid.IntRange(0, values[at]-1).Draw(t, "word"))
			}
			kind := rapid.SampledFrom([]string{"a", "b", "a"}).Draw(t, "type")
			groups[i] = labelled{fmt.Sprint("f", i), "timeout", kind, strings.Join(words, " ")}
		}
		found := families(groups)
		left := map[string]*labelled{}
		for i := range groups {
			left[groups[i].fingerprint] = &groups[i]
		}
		for _, f := range found {
			alike(t, &f)
			for _, g := range f.groups {
				if left[g.fingerprint] == nil {
					t.Fatalf("group %s is in two families", g.fingerprint)
				}
				delete(left, g.fingerprint)
			}
			var alone []labelled
			for _, g := range f.groups {
				alone = append(alone, *g)
			}
			if again := families(alone); !slices.Equal(names(again), names([]family{f})) {
				t.Fatalf("the groups of family %s alone have %v", names([]family{f}), names(again))
			}
		}
		noneIsLeft(t, slices.Collect(maps.Values(left)))
		shuffled := slices.Clone(groups)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := families(shuffled); !slices.Equal(names(again), names(found)) {
			t.Fatalf("in another order families are %v, not %v", names(again), names(found))
		}
	})
}

// names has families with all their groups.
func names(list []family) (all []string) {
	for _, f := range list {
		name := f.id + fmt.Sprint(f.open)
		for _, g := range f.groups {
			name += " " + g.fingerprint
		}
		all = append(all, name)
	}
	return all
}

// alike checks that labels differ in all open words and in no other.
func alike(t *rapid.T, f *family) {
	if len(f.groups) < familyLeast || len(f.open) < 1 || len(f.open) > 2 {
		t.Fatalf("family %+v", f)
	}
	for _, g := range f.groups {
		if g.without(f.open) != f.groups[0].without(f.open) || g.kind != f.groups[0].kind {
			t.Fatalf("%q and %q are in one family", g.label, f.groups[0].label)
		}
	}
	for _, at := range f.open {
		if !slices.ContainsFunc(f.groups, func(g *labelled) bool {
			return strings.Fields(g.label)[at] != strings.Fields(f.groups[0].label)[at]
		}) {
			t.Fatalf("no label differs at %d: %+v", at, f)
		}
	}
}

// noneIsLeft checks that groups without a family make none.
func noneIsLeft(t *rapid.T, left []*labelled) {
	fits, labels := map[string]int{}, map[string]map[string]bool{}
	for _, g := range left {
		n := len(strings.Fields(g.label))
		for a := range n {
			for b := a; b < n; b++ {
				key := g.kind + fmt.Sprint(a, b) + g.without([]int{a, b})
				fits[key]++
				if labels[key] == nil {
					labels[key] = map[string]bool{}
				}
				labels[key][g.label] = true
			}
		}
	}
	for key, n := range fits {
		if n >= familyLeast && len(labels[key]) > 1 {
			t.Fatalf("%d groups are in no family: %s", n, key)
		}
	}
}

// The time of families grows as the groups do, also where every word of a label has many values and
// is in many labels.
func BenchmarkFamilies(b *testing.B) {
	for _, n := range []int{30_000, 120_000} {
		for name, form := range map[string]func(i int) string{
			"letters": func(i int) string {
				return "dependency: no route to server " + word(i%26) + fmt.Sprintf("%x", i) + ": connection refused"
			},
			"grid": func(i int) string { return fmt.Sprintf("dependency: host %d of rack %d: refused", i%200, i/200) },
			"all": func(i int) string {
				r := rand.New(rand.NewPCG(uint64(i), 2))
				words := make([]string, 14)
				for at := range words {
					words[at] = word(r.IntN(50))
				}
				return strings.Join(words, " ")
			},
		} {
			groups := make([]labelled, n)
			for i := range groups {
				groups[i] = labelled{fmt.Sprint("f", i), "dependency", "ship", form(i)}
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					families(groups)
				}
			})
		}
	}
}
