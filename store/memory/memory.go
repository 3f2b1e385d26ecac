// Package memory is the reference store. It keeps the contract of package store in the plainest
// code: maps and slices under one mutex. Random tests compare the other stores with it, and
// programs use it in their own tests. Its data is lost when the process ends.
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

// Options configure a store; the zero value is ready.
type Options struct {
	Clock func() time.Time // time of the store; nil is time.Now
	Owner string           // of the leases of this handle; empty is "memory"
}

// Store is a handle on a store in memory, as one process would have it. Handles made by
// [Store.Join] share the messages and own their leases. All methods are safe for concurrent use.
type Store struct {
	*shared
	owner string
	gone  bool // closed or crashed: its leases are void
	told  bool // it was told to stop: what it leaves behind is no crash
	wakes store.Wakes
}

// shared has the data of a store, for all its handles.
type shared struct {
	mu         sync.Mutex
	clock      func() time.Time
	ids        store.IDs
	queues     map[string]*queue
	messages   map[nixie.ID]*message
	letters    map[nixie.ID]*letter
	born       []*letter // all letters, in the order in which they were made
	operations map[nixie.ID]*operation
	planned    []*operation // all operations, in the order of their plans
	position   int64        // of the newest message
	births     int          // of letters
	documents  map[store.DocumentKey]*store.Document
	revision   int64  // of the newest document
	pruneAt    string // cursor after the last step of Prune with Resume
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
		documents:  map[store.DocumentKey]*store.Document{},
	}
	return all.handle(o.Owner)
}

// Join makes another handle on the same store, as another process would have it. Two handles are
// two owners, also if their names are equal.
func (s *Store) Join(owner string) *Store { return s.handle(owner) }

func (a *shared) handle(owner string) *Store {
	return &Store{shared: a, owner: owner}
}

// Crash ends the handle as the death of a process would: the next claim of another handle ends its
// leases, and its own calls get CodeUnavailable.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// Close ends the handle. The next claim of another handle ends its leases, to be judged. A second
// Close does nothing.
func (s *Store) Close() error {
	s.Crash()
	return nil
}

// Features returns streams, Check, and Wake for messages that this handle adds.
func (s *Store) Features() store.Features {
	return store.Features{
		Streams: s, Documents: documents{s}, Check: s.Check, Tried: s.tried, Wake: s.wakes.Next,
		Stopping: s.stopping, Regroup: s.regroup, Ended: s.ended,
	}
}

// stopping implements Stopping of store.Features.
func (s *Store) stopping(ctx context.Context, told bool) error {
	if _, err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.told = told
	return nil
}

// enter locks the mutex and returns the time of this call. Without an error the caller unlocks.
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

// each calls f for each of n parts of a call and collects the errors, or gives all parts the error
// of the whole call.
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
