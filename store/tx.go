package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// InboxRetention says how long a store remembers the keys of [Tx.Once].
const InboxRetention = 30 * 24 * time.Hour

// Tx is an optional ability: a store bound to a transaction of the caller. What
// is done through it happens if and when the transaction commits, together with
// the caller's own rows, by the same rules as outside. How a store is bound is
// its own affair, as each has its own kind of transaction.
//
// Each call is whole or changes nothing, and one that is refused leaves the
// transaction usable.
type Tx interface {
	nixie.Enqueuer

	// Complete ends the message of a delivery as succeeded, with its steps. A
	// lease that is not current gets CodeLeaseLost. The delivery is
	// [nixie.Delivery.Completed] then, at the latest when the transaction has
	// committed.
	Complete(ctx context.Context, d *nixie.Delivery) error

	// Once reports whether a key is new to a scope, and remembers it: true the
	// first time, false after that for at least [InboxRetention]. Of two that ask at once, the second waits
	// until the first has committed or rolled back.
	Once(ctx context.Context, scope, key string) (first bool, err error)
}
