package runner

import "testing"

// A share counts from the tenth end on, a number from the first. Equal is not over a share, also
// where the share has no exact float.
func TestStopAfterIsReached(t *testing.T) {
	t.Parallel()
	tenth, two := StopAfter{Share: 0.1}, StopAfter{Dead: 2}
	for _, c := range []struct {
		stop        StopAfter
		dead, ended int64
		want        bool
	}{
		{StopAfter{}, 1000, 1000, false},
		{tenth, 9, 9, false}, {tenth, 1, 10, false}, {tenth, 2, 10, true}, {tenth, 2, 20, false}, {tenth, 3, 20, true},
		{tenth, 100, 1000, false}, {tenth, 101, 1000, true},
		{StopAfter{Share: 0.29}, 29, 100, false}, {StopAfter{Share: 0.29}, 30, 100, true},
		{StopAfter{Share: 0.023}, 23, 1000, false}, {StopAfter{Share: 0.023}, 24, 1000, true},
		{StopAfter{Share: 1}, 50, 50, false},
		{two, 1, 1, false}, {two, 2, 2, true}, {two, 2, 1000, true},
	} {
		if got := c.stop.reached(c.dead, c.ended); got != c.want {
			t.Errorf("%s with %d dead of %d: %v", c.stop, c.dead, c.ended, got)
		}
	}
}
