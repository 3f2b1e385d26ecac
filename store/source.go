package store

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// pollEvery is how often a waiting Source asks a store that has nothing due:
// the bound on how late it sees a retry that became due or work that another
// process added.
const pollEvery = 50 * time.Millisecond

// Source is a queue in a store as a [nixie.Source], or several that share their
// worker fairly: each gets its turn to be first, and none more than its share of
// a batch as long as others have work.
type Source struct {
	queue Queue
	names []string
	turn  atomic.Uint64
}

// NewSource makes the named queues of a store one source. They need not exist
// yet.
func NewSource(q Queue, names ...string) *Source { return &Source{queue: q, names: names} }

// Name is the name of the queue, or the names with commas.
func (s *Source) Name() string { return strings.Join(s.names, ",") }

// Receive claims, and waits up to want.Wait for the first message.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	wake := s.wake()
	got, err := s.claim(ctx, want)
	if len(got) > 0 || err != nil || want.Wait <= 0 {
		return got, err
	}
	if a, ok := s.queue.(Awaiter); ok && len(s.names) == 1 {
		return s.await(ctx, a, want)
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
		if got, err := s.claim(ctx, want); len(got) > 0 || err != nil {
			return got, err
		}
	}
}

// await waits for work, and asks now and then for what it may have missed.
func (s *Source) await(ctx context.Context, a Awaiter, want nixie.Want) ([]*nixie.Delivery, error) {
	end := time.NewTimer(want.Wait)
	defer end.Stop()
	want.Wait = min(want.Wait, pollEvery)
	for {
		if got, err := a.Await(ctx, s.names[0], want); len(got) > 0 || err != nil {
			return got, err
		}
		select {
		case <-end.C:
			return nil, nil
		default:
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

// wake is the hint of a single queue; of several the poll is soon enough.
func (s *Source) wake() <-chan struct{} {
	if w, ok := s.queue.(Waker); ok && len(s.names) == 1 {
		return w.Wake(s.names[0])
	}
	return nil
}

// claim claims from each queue its share, and then from whichever has more. What
// was claimed before an error is returned without it: the next call meets it
// again.
func (s *Source) claim(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	n := len(s.names)
	if n == 1 {
		return s.queue.Claim(ctx, s.names[0], want)
	}
	first := int(s.turn.Add(1) % uint64(n))
	share := (want.Max + n - 1) / n
	parts := make([][]*nixie.Delivery, n)
	for i, all := 0, 0; i < 2*n; i++ {
		if i == n {
			share = want.Max // the second round: there is room that nobody's share filled
		}
		part := want
		part.Max = min(share, want.Max-all)
		if part.Max == 0 {
			break
		}
		part.Fresh = want.Fresh || all > 0 // a suspect comes alone
		ds, err := s.queue.Claim(ctx, s.names[(first+i)%n], part)
		parts[i%n] = append(parts[i%n], ds...)
		all += len(ds)
		switch {
		case err != nil && all == 0:
			return nil, err
		case err != nil, all == 1 && len(ds) == 1 && ds[0].Crashes > 0:
			return inTurns(parts), nil
		}
	}
	return inTurns(parts), nil
}

// inTurns joins lists: the first of each, then the second of each, and so on. So
// a short list does not wait for a long one to be worked off.
func inTurns(lists [][]*nixie.Delivery) (all []*nixie.Delivery) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, list := range lists {
			if i < len(list) {
				all = append(all, list[i])
				more = true
			}
		}
	}
	return all
}
