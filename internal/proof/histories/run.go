package histories

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// Run checks histories of a store: 60 in every run of the tests, 10,000 in deep
// ones. name is that of the proof.
func Run(t *testing.T, name string, h Harness) {
	var all tally
	calls, unknown, kills, followed := 0, 0, 0, 0
	proof.Run(t, name, func(t *testing.T, seed uint64) int {
		v := play(t, h, seed)
		all, calls, unknown, kills = all.add(v.queue), calls+v.calls, unknown+v.unknown, kills+v.kills
		followed += v.followed
		for _, problem := range v.problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		return 1
	})
	t.Logf("%d calls, %d of unknown outcome, %d processes killed; messages: %s; %d followed settlements", calls, unknown, kills, all,
		followed)
}

// Find makes histories from seed 1 on and returns the first seed up to most in
// which something is wrong, and what; 0 when nothing is. Tests of the harness
// itself give it stores that are broken on purpose.
func Find(t testing.TB, h Harness, most uint64) (seed uint64, problems []string) {
	for seed := uint64(1); seed <= most; seed++ {
		if v := play(t, h, seed); len(v.problems) > 0 {
			return seed, v.problems
		}
	}
	return 0, nil
}
