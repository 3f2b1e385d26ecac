package lease

import (
	"context"

	"github.com/nixie-go/nixie"
)

// Historian is an optional ability of a source: it knows what its messages failed of.
type Historian interface {
	// LastFailure returns the newest failure of a delivery that this source handed out, nil if it
	// knows none. It is that of [LastFailure].
	LastFailure(ctx context.Context, d *nixie.Delivery) (*nixie.Failure, error)
}

// LastFailure returns the newest failure of a history, oldest first, that says what went wrong. A
// holder that vanished says so only if nothing else does. Of an empty history it is nil.
func LastFailure(history []nixie.Failure) *nixie.Failure {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Reason != nixie.ReasonLeaseExpired {
			return &history[i]
		}
	}
	if n := len(history); n > 0 {
		return &history[n-1]
	}
	return nil
}
