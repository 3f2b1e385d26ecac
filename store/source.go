package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// pollEvery is how often a waiting Source asks a store that does not watch, and how soon
// one that does looks after something has happened: the bound on how late a retry that
// became due is seen.
const pollEvery = 50 * time.Millisecond

// Source is a queue in a store as a [nixie.Source], or several that share their
// worker fairly: each gets its turn to be first, and none more than its share of
// a batch as long as others have work.
type Source struct {
	queue Queue
	store Features
	names []string
	turn  atomic.Uint64
	lulls lulls
}

// NewSource makes the named queues of a store one source. They need not exist
// yet.
func NewSource(q Queue, names ...string) *Source {
	return &Source{queue: q, store: q.Features(), names: names, lulls: lulls{by: make([]lull, len(names))}}
}

// Name is the name of the queue, or the names with commas.
func (s *Source) Name() string { return strings.Join(s.names, ",") }

// Receive claims, and waits up to want.Wait for the first message.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Wait <= 0 {
		s.lulls.forget()
		return s.claim(ctx, want)
	}
	if s.store.Watch != nil {
		defer s.store.Watch(s.names...)()
	}
	end := time.NewTimer(want.Wait)
	defer end.Stop()
	for {
		got, err := s.claim(ctx, want)
		if len(got) == 0 && err == nil {
			got, err = s.pause(ctx, want, end.C)
		}
		if errors.Is(err, errOver) {
			return nil, nil
		}
		if len(got) > 0 || err != nil {
			return got, err
		}
	}
}

// errOver is the end of a wait.
var errOver = errors.New("over")

// pause waits until a claim may find something, and returns what a store hands out
// meanwhile.
func (s *Source) pause(ctx context.Context, want nixie.Want, end <-chan time.Time) ([]*nixie.Delivery, error) {
	if s.store.Watch == nil {
		defer s.lulls.forget()
		poll := time.NewTimer(pollEvery)
		defer poll.Stop()
		return nil, s.lulls.wait(ctx, end, poll.C, want.NoSuspects)
	}
	idle := s.lulls.of(0, want.NoSuspects)
	if s.store.Await == nil || len(s.names) > 1 || idle == nil {
		return nil, s.lulls.wait(ctx, end, nil, want.NoSuspects)
	}
	got, err := s.store.Await(ctx, s.names[0], want, idle)
	select {
	case <-end:
		if len(got) == 0 && err == nil {
			err = errOver
		}
	default:
	}
	return got, err
}

// Extend renews leases.
func (s *Source) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return s.queue.Extend(ctx, ds, lease)
}

// Settle applies decisions.
func (s *Source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	return s.queue.Settle(ctx, settlements)
}

// wake is the hint of a queue. It never comes if the store gives none.
func (s *Source) wake(i int) <-chan struct{} {
	if s.store.Wake != nil {
		return s.store.Wake(s.names[i])
	}
	return make(chan struct{})
}

// claim claims from each queue its share, and then from whichever has more. What
// was claimed before an error is returned without it: the next call meets it
// again.
func (s *Source) claim(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	n := len(s.names)
	if n == 1 {
		return s.claimOne(ctx, 0, want)
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
		part.NoSuspects = want.NoSuspects || all > 0 // suspects come with nothing else
		ds, err := s.claimOne(ctx, (first+i)%n, part)
		parts[i%n] = append(parts[i%n], ds...)
		all += len(ds)
		switch {
		case err != nil && all == 0:
			return nil, err
		case err != nil, len(ds) > 0 && len(ds) == all && ds[0].Crashes > 0:
			return inTurns(parts), nil
		}
	}
	return inTurns(parts), nil
}

// claimOne claims from one queue, unless it is known to have nothing.
func (s *Source) claimOne(ctx context.Context, i int, want nixie.Want) ([]*nixie.Delivery, error) {
	if s.lulls.of(i, want.NoSuspects) != nil {
		return nil, nil
	}
	wake := s.wake(i)
	got, err := s.queue.Claim(ctx, s.names[i], want)
	if err == nil && (len(got) == 0 || s.store.Watch != nil && tookAll(got, want.Max)) {
		s.lulls.begin(i, want.NoSuspects, wake)
	}
	return got, err
}

// tookAll reports whether a claim that found less than it wanted has left nothing: suspects
// leave others behind, and so do large bodies.
func tookAll(got []*nixie.Delivery, most int) bool {
	size := 0
	for _, d := range got {
		if d.Crashes > 0 || d.Abandoned {
			return false
		}
		size += len(d.Body)
	}
	return len(got) < most && size < nixie.MaxBatchBytes/2
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
