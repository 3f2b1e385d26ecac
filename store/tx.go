package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// InboxRetention says how long a store remembers the keys of [Tx.Once].
const InboxRetention = 30 * 24 * time.Hour

// Tx is an optional ability: a store that takes part in a transaction of the caller. Its changes
// commit together with the caller's own rows, by the same rules as outside. Each store has its own
// method that returns a Tx, because each has its own kind of transaction.
//
// Each call changes everything or nothing. A refused call leaves the transaction usable.
type Tx interface {
	nixie.Enqueuer

	// Complete ends the message of a delivery as succeeded, with its steps. A lease that is not
	// current gets CodeLeaseLost. [nixie.Delivery.Completed] is true when the transaction has
	// committed, or before.
	Complete(ctx context.Context, d *nixie.Delivery) error

	// Once reports whether a key is new to a scope, and remembers it: true the first time, false
	// after that for at least [InboxRetention]. Of two transactions that ask at once, the second
	// waits until the first has committed or rolled back.
	Once(ctx context.Context, scope, key string) (first bool, err error)
}
