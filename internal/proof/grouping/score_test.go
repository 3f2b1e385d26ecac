package grouping_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof/grouping"
)

// A group too many costs recall, a group too few precision, and either costs exact groups.
func TestOf(t *testing.T) {
	a, b := func(group string) grouping.Pair { return grouping.Pair{Label: "a", Group: group} },
		func(group string) grouping.Pair { return grouping.Pair{Label: "b", Group: group} }
	for name, c := range map[string]struct {
		members                  []grouping.Pair
		precision, recall, exact float64
	}{
		"nothing": {nil, 1, 1, 1},
		"right":   {[]grouping.Pair{a("x"), a("x"), b("y"), b("y")}, 1, 1, 1},
		"merged":  {[]grouping.Pair{a("x"), a("x"), b("x"), b("x")}, 2. / 6, 1, 0},
		"split":   {[]grouping.Pair{a("x"), a("z"), b("y"), b("y")}, 1, 0.5, 0.5},
	} {
		s := grouping.Of(c.members)
		if s.Precision != c.precision || s.Recall != c.recall || s.Exact != c.exact {
			t.Errorf("%s: %+v", name, s)
		}
	}
	mean := grouping.Mean([]grouping.Score{{Precision: 1, Recall: 0, Members: 3}, {Precision: 0, Recall: 1, Members: 4}})
	if mean.Precision != 0.5 || mean.Recall != 0.5 || mean.Members != 7 {
		t.Errorf("the mean is %+v", mean)
	}
}
