package lifecycle

import "testing"

// TestGoes tries all inputs. At most one message of a stream is leased. Behind a dead letter only
// messages that may pass go. No message passes a first one that can go.
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
			t.Errorf("%04b: two are leased", bits)
		case !leased && head == blocked:
			t.Errorf("%04b: the first goes: %v", bits, head)
		case !strict && passing:
			t.Errorf("%04b: a message passes in a relaxed order", bits)
		case strict && !leased && passing != (blocked || due > now):
			t.Errorf("%04b: passing is %v", bits, passing)
		}
	}
}
