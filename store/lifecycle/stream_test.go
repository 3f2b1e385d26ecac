package lifecycle

import "testing"

// TestGoes walks all that can be said of a stream: at most one of it is out, nobody goes
// behind a dead letter but who may pass, and nobody passes a first that can go.
func TestGoes(t *testing.T) {
	t.Parallel()
	const now = 50
	for bits := range 1 << 4 {
		has := func(i int) bool { return bits>>i&1 == 1 }
		strict, leased, blocked, due := has(0), has(1), has(2), int64(now)
		if has(3) {
			due++
		}
		head, passing := Goes(strict, leased, blocked, due, now)
		switch {
		case leased && (head || passing):
			t.Errorf("%04b: two are out", bits)
		case !leased && head == blocked:
			t.Errorf("%04b: the first goes: %v", bits, head)
		case !strict && passing:
			t.Errorf("%04b: somebody passes in a relaxed order", bits)
		case strict && !leased && passing != (blocked || due > now):
			t.Errorf("%04b: somebody passes: %v", bits, passing)
		}
	}
}
