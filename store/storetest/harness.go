// Package storetest is the suite that every store passes. [Run] checks the
// contract of package store clause by clause, [Model] compares a store with
// store/memory under random operations, [Invariants] checks what must hold of
// any store at any time, and [Bench] measures.
//
// A store's own tests need a [Harness] and one line each:
//
//	func TestStore(t *testing.T)      { storetest.Run(t, harness) }
//	func TestModel(t *testing.T)      { storetest.Model(t, harness) }
//	func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// Harness says how to get a store to test.
type Harness struct {
	// Open makes a new and empty store that tells the time by clock. It ends
	// the test when it cannot.
	Open func(t testing.TB, clock *Clock) Shared

	// Begin begins a transaction of the caller in what Join returned. It is
	// nil for stores that cannot be bound to one; others also run the clauses
	// on transactions, and the model makes some.
	Begin func(ctx context.Context, st store.Store) (OpenTx, error)
}

// Shared is one store that several processes use. All functions are called
// from one goroutine at a time.
type Shared struct {
	// Join opens the store as one more process does. The owner's name is not
	// used twice.
	Join func(owner string) store.Store
	// Crash ends what Join returned without a goodbye: it holds no locks and
	// its leases are void at the next claim by anybody.
	Crash func(store.Store)
	// Close ends everything that was joined and is open, and removes the store.
	Close func()
}

// Memory is a store of package store/memory: what [Model] compares with.
func Memory(_ testing.TB, clock *Clock) Shared {
	first := memory.New(memory.Options{Clock: clock.Now})
	return Shared{
		Join:  func(owner string) store.Store { return first.Join(owner) },
		Crash: func(st store.Store) { st.(*memory.Store).Crash() },
		Close: func() {},
	}
}

// Clock is a time that only tests move. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that stands at a whole second in 2026, UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.March, 14, 15, 0, 0, 0, time.UTC)}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time on by d, which is a whole number of milliseconds in
// this package so that stores with coarse clocks can follow.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// clause is one test of a part of the contract.
type clause struct {
	name string
	test func(b *fixture)
}

// Run checks the contract. Each clause gets a store of its own.
func Run(t *testing.T, h Harness) {
	type part struct {
		name    string
		clauses []clause
	}
	parts := []part{
		{"Enqueue", enqueueClauses()},
		{"Dedupe", dedupeClauses()},
		{"Claim", claimClauses()},
		{"Lease", leaseClauses()},
		{"Settle", settleClauses()},
		{"Many", manyClauses()},
		{"Source", sourceClauses()},
		{"Abandon", abandonClauses()},
		{"Amend", amendClauses()},
		{"Letters", letterClauses()},
		{"Lists", listClauses()},
		{"Adopt", adoptClauses()},
		{"Redrive", redriveClauses()},
		{"Resolve", resolveClauses()},
		{"Edit", editClauses()},
		{"Operations", operationClauses()},
		{"Notes", noteClauses()},
		{"Purge", purgeClauses()},
		{"Prune", pruneClauses()},
		{"Streams", streamClauses()},
		{"Wait", waitClauses()},
		{"Audit", auditClauses()},
		{"Queues", queueClauses()},
		{"Operators", operatorClauses()},
		{"Retrying", retryingClauses()},
		{"AuditLists", auditListClauses()},
		{"Limits", limitClauses()},
		{"Tables", tableClauses()},
		{"Bugs", bugClauses()},
		{"Races", raceClauses()},
	}
	if h.Begin != nil {
		parts = append(parts, part{"Transactions", txClauses(h.Begin)})
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { runClauses(t, h, part.clauses) })
	}
}

// RunTransactions checks the part of the contract on transactions of the caller
// alone, for stores that can be bound to more than one kind of them.
func RunTransactions(t *testing.T, h Harness) { runClauses(t, h, txClauses(h.Begin)) }

func runClauses(t *testing.T, h Harness, clauses []clause) {
	for _, c := range clauses {
		t.Run(c.name, func(t *testing.T) {
			b := newFixture(t, h)
			c.test(b)
			b.sound()
		})
	}
}
