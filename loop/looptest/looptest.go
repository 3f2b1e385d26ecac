// Package looptest has doubles of mailboxes for tests of programs that use package loop.
package looptest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

var (
	_ loop.Target = Null{}
	_ loop.Target = (*Collector[int])(nil)
)

// Null takes replies and drops them.
type Null struct{}

// Name returns "null".
func (Null) Name() string { return "null" }

// Put drops the body.
func (Null) Put(context.Context, any, ...nixie.Option) (nixie.ID, error) { return newID(), nil }

func newID() nixie.ID {
	var ids store.IDs
	return ids.New(time.Now())
}

// Collector takes replies of type R and keeps them. The zero value is ready; it is safe for
// concurrent use.
type Collector[R any] struct {
	mu       sync.Mutex
	bodies   []R
	messages []nixie.Message
}

// Name returns "collector".
func (*Collector[R]) Name() string { return "collector" }

// Put keeps the body. One of another type is [loop.ErrSerialization].
func (c *Collector[R]) Put(_ context.Context, body any, opts ...nixie.Option) (nixie.ID, error) {
	typed, ok := body.(R)
	if !ok {
		return nixie.ID{}, loop.ErrSerialization
	}
	m := nixie.Message{ID: newID(), Queue: c.Name()}
	for _, set := range opts {
		set(&m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.messages = append(c.bodies, typed), append(c.messages, m)
	return m.ID, nil
}

// Bodies returns the bodies that it has, in their order.
func (c *Collector[R]) Bodies() []R {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bodies)
}

// Messages returns the messages of Bodies, without their bodies: for headers and the like.
func (c *Collector[R]) Messages() []nixie.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}

// Fake is a mailbox in memory whose handles expire and whose connection fails when a test says so.
type Fake[T, R any] struct {
	*loop.Mailbox[T, R]
	Store *Store
}

// New makes a fake mailbox. It is closed when the test ends.
func New[T, R any](t testing.TB, name string, c loop.Config) *Fake[T, R] {
	t.Helper()
	st := &Store{Store: memory.New(memory.Options{Clock: c.Clock})}
	box, err := loop.In[T, R](st, name, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Close)
	return &Fake[T, R]{box, st}
}

// Expire ends the visibility of a received message: the next receiver gets it, and this handle
// changes nothing any more.
func (*Fake[T, R]) Expire(t testing.TB, m *loop.Message[T, R]) {
	t.Helper()
	if err := m.Extend(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// Store is a store in memory that fails when a test says so.
type Store struct {
	*memory.Store
	mu  sync.Mutex
	err error
}

// Fail makes every call fail with err from now on; nil makes them work again. [nixie.Errorf] makes
// errors with a code, for example of [nixie.CodeUnavailable].
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Features has no ability, so that each call is one of those below.
func (*Store) Features() store.Features { return store.Features{} }

// Enqueue implements [store.Queue].
func (s *Store) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.Store.Enqueue(ctx, messages...)
}

// Claim implements [store.Queue].
func (s *Store) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, queue, want)
}

// Extend implements [store.Queue].
func (s *Store) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	if err := s.failure(); err != nil {
		return slices.Repeat([]error{err}, len(ds))
	}
	return s.Store.Extend(ctx, ds, lease)
}

// Settle implements [store.Queue].
func (s *Store) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	if err := s.failure(); err != nil {
		return slices.Repeat([]error{err}, len(sts))
	}
	return s.Store.Settle(ctx, sts)
}

// Queues implements [store.Queue].
func (s *Store) Queues(ctx context.Context, query store.QueueQuery) ([]store.QueueInfo, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.Store.Queues(ctx, query)
}

// Purge implements [loop.Store].
func (s *Store) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	if err := s.failure(); err != nil {
		return 0, err
	}
	return s.Store.Purge(ctx, queue, filter, most, actor, reason)
}
