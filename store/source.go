package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// pollEvery is how often a waiting Source asks a store that has nothing due:
// the bound on how late it sees a retry that became due or work that another
// process added.
const pollEvery = 50 * time.Millisecond

// Source is a queue in a store as a [nixie.Source].
type Source struct {
	queue Queue
	name  string
}

// NewSource makes the named queue of a store a source. The queue need not
// exist yet.
func NewSource(q Queue, name string) *Source { return &Source{q, name} }

// Name is the name of the queue.
func (s *Source) Name() string { return s.name }

// Receive claims, and waits up to want.Wait for the first message.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	wake := s.wake()
	got, err := s.queue.Claim(ctx, s.name, want)
	if len(got) > 0 || err != nil || want.Wait <= 0 {
		return got, err
	}
	end := time.NewTimer(want.Wait)
	defer end.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return nil, nil
		case <-poll.C:
		case <-wake:
			wake = s.wake()
		}
		if got, err := s.queue.Claim(ctx, s.name, want); len(got) > 0 || err != nil {
			return got, err
		}
	}
}

// Extend renews leases.
func (s *Source) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return s.queue.Extend(ctx, ds, lease)
}

// Settle applies decisions.
func (s *Source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	return s.queue.Settle(ctx, settlements)
}

func (s *Source) wake() <-chan struct{} {
	if w, ok := s.queue.(Waker); ok {
		return w.Wake(s.name)
	}
	return nil
}
