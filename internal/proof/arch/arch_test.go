package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRepository holds this repository to its plan.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.packages) == 0 || tree.packages[0].path != "." {
		t.Fatal("the root package was not found: is the test run in its own folder?")
	}
	for _, v := range Check(tree) {
		t.Error(v)
	}
}

// TestSizes prints how big each part of the repository is and holds it to its bounds.
func TestSizes(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, v := range Sizes(tree, &table) {
		t.Error(v)
	}
	t.Log("\n" + table.String())
	for _, r := range plan {
		if !slices.ContainsFunc(tree.packages, func(p *pkg) bool { return matches([]string{r.path}, p.path) }) {
			t.Errorf("%s is in the plan and not in the tree", r.path)
		}
	}
}

// TestPlanIsALattice checks the plan itself: rows in order, each once, and
// nothing named that has no row.
func TestPlanIsALattice(t *testing.T) {
	seen := map[string]bool{}
	last := 0
	for _, r := range plan {
		if seen[r.path] {
			t.Errorf("%s has two rows", r.path)
		}
		seen[r.path] = true
		if r.job == "" {
			t.Errorf("%s has no job", r.path)
		}
		if r.kind != proof && r.floor < last {
			t.Errorf("%s: floor %d after floor %d; lowest first", r.path, r.floor, last)
		}
		last = r.floor
		for _, other := range append(append([]string(nil), r.sees...), r.only...) {
			to, ok := roomOf(other)
			if !ok {
				t.Errorf("%s may import %s, which has no row", r.path, other)
			}
			if back := refused(to, r.path); back == "" && to.kind != proof && r.kind != proof {
				t.Errorf("%s and %s may import each other", r.path, other)
			}
		}
	}
}
