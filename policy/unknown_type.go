package policy

import (
	"time"

	"github.com/nixie-go/nixie"
)

// Bounds of the wait of a message that no worker knows the type of.
const (
	firstUnknown = time.Second
	lastUnknown  = 30 * time.Second
)

// staysUnknown reports whether a message was refused for too long because of its type, so that no
// worker is expected any more that knows it.
func (q facts) staysUnknown() bool {
	if q.asked.Waiver() != nixie.WaiveUnknown {
		return false
	}
	since := q.d.Patience.RefusedSince
	return q.asked.Within <= 0 || !since.IsZero() && q.now.Sub(since) >= q.asked.Within
}

// untilKnown returns the wait of a message whose type this worker does not know: about as long as
// it has been refused, so that a worker which knows it finds it soon after the first refusals, and
// a late one does not have to ask too often. For another release it is 0.
func (q facts) untilKnown() time.Duration {
	if q.asked.Waiver() != nixie.WaiveUnknown {
		return 0
	}
	wait, left := firstUnknown, q.asked.Within
	if since := q.d.Patience.RefusedSince; !since.IsZero() {
		refused := q.now.Sub(since)
		wait, left = min(max(refused, firstUnknown), lastUnknown), left-refused
	}
	spread := Backoff{Jitter: JitterEqual}.jittered(wait, randomFor(q.d.ID, q.d.Generation, q.d.Deliveries))
	return min(spread, left)
}
