// Package memory is the reference store: the contract of package store in the
// plainest code that keeps it, maps and slices under one mutex. Random tests
// compare the other stores with it, and programs use it in their own tests. It
// keeps everything until the process ends, but for what is pruned or purged.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

var (
	_ store.Store       = (*Store)(nil)
	_ lease.ProgressLog = (*Store)(nil)
)

// Options say how a store is made; the zero value is ready.
type Options struct {
	Clock func() time.Time // what the store calls now; nil is time.Now
	Owner string           // who holds the leases of this handle; empty is "memory"
}

// Store is one process's handle on a store in memory. Handles made by
// [Store.Join] share the messages and differ in who owns the leases. All
// methods are safe for concurrent use.
type Store struct {
	*shared
	owner string
	gone  bool // closed or crashed: its leases are void
	wakes store.Wakes
}

// shared is what all handles of a store have in common.
type shared struct {
	mu         sync.Mutex
	clock      func() time.Time
	ids        store.IDs
	queues     map[string]*queue
	messages   map[nixie.ID]*message
	letters    map[nixie.ID]*letter
	born       []*letter // in the order of their birth
	operations map[nixie.ID]*operation
	planned    []*operation // in the order of their planning
	position   int64        // of the newest message
	births     int          // of letters
	pruneAt    string       // cursor of the last step of pruning that is to be resumed
}

// New makes an empty store and the first handle on it.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now //nolint:forbidigo // the default
	}
	if o.Owner == "" {
		o.Owner = "memory"
	}
	all := &shared{
		clock:      o.Clock,
		queues:     map[string]*queue{},
		messages:   map[nixie.ID]*message{},
		letters:    map[nixie.ID]*letter{},
		operations: map[nixie.ID]*operation{},
	}
	return all.handle(o.Owner)
}

// Join makes another handle on the same store, as another process would have.
// Two handles are two owners also when their names are equal.
func (s *Store) Join(owner string) *Store { return s.handle(owner) }

func (a *shared) handle(owner string) *Store {
	return &Store{shared: a, owner: owner}
}

// Crash ends the handle as the death of its process would: its leases are void
// at the next claim, and its calls get CodeUnavailable.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// Close ends the handle: its leases are void at the next claim and are judged
// then. The other handles go on. Closing twice is fine.
func (s *Store) Close() error {
	s.Crash()
	return nil
}

// Features are those of queues with an order, and Wake for what this handle adds.
func (s *Store) Features() store.Features {
	return store.Features{Streams: s, Check: s.Check, Wake: s.wakes.Next}
}

// enter takes the mutex and says what time it is for this call. Without an
// error the caller unlocks.
func (s *Store) enter(ctx context.Context) (now time.Time, err error) {
	if ctx.Err() != nil {
		return now, nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return now, nixie.Errorf(nixie.CodeUnavailable, "store is %w: open it again", nixie.ErrClosed)
	}
	return s.clock().UTC(), nil
}

// each answers a call about n things with f for each of them, or for all with
// the reason why the call cannot be served.
func (s *Store) each(ctx context.Context, n int, f func(i int, now time.Time) error) []error {
	errs := make([]error, n)
	var now time.Time
	err := store.CheckCall(n)
	if err == nil {
		if now, err = s.enter(ctx); err == nil {
			defer s.mu.Unlock()
		}
	}
	for i := range errs {
		if errs[i] = err; err == nil {
			errs[i] = f(i, now)
		}
	}
	return errs
}
