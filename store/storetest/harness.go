// Package storetest is the suite that every store passes.
//
//	Run         checks the contract of package store clause by clause
//	Model       compares a store with store/memory under random operations
//	Invariants  checks rules that hold for any store at any time
//	Bench       measures
//
// The tests of a store need a [Harness] and one line each:
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

// Harness makes stores to test.
type Harness struct {
	// Open makes a new and empty store whose time is that of clock. It ends the test if it cannot.
	Open func(t testing.TB, clock *Clock) Shared

	// Begin begins a transaction of the caller in a store that Join returned. It is nil for stores
	// without such transactions. With it, the clauses on transactions run too, and the model makes
	// transactions.
	Begin func(ctx context.Context, st store.Store) (OpenTx, error)
}

// Shared is one store that several processes use. All functions are called from one goroutine at a
// time.
type Shared struct {
	// Join opens the store as one more process does. No owner name is used twice.
	Join func(owner string) store.Store
	// Crash ends a process that Join returned, as a kill would: it holds no locks, and the next
	// claim of any process ends its leases.
	Crash func(store.Store)
	// Close ends all open processes, and removes the store.
	Close func()
}

// Memory makes a store of package store/memory, with which [Model] compares.
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

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time on by d. This package uses whole milliseconds only, so that stores with
// coarse clocks can follow.
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
		{"Then", thenClauses()},
		{"Exchange", exchangeClauses()},
		{"Notice", noticeClauses()},
		{"Many", manyClauses()},
		{"Source", sourceClauses()},
		{"Abandon", abandonClauses()},
		{"Stopping", stoppingClauses()},
		{"Amend", amendClauses()},
		{"Patience", patienceClauses()},
		{"Letters", letterClauses()},
		{"Lists", listClauses()},
		{"Adopt", adoptClauses()},
		{"Redrive", redriveClauses()},
		{"Resolve", resolveClauses()},
		{"Edit", editClauses()},
		{"Operations", operationClauses()},
		{"Outcomes", outcomeClauses()},
		{"Regroup", regroupClauses()},
		{"Notes", noteClauses()},
		{"Documents", documentClauses()},
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

// RunTransactions checks the clauses on transactions of the caller alone, for stores that have
// several kinds of them.
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
