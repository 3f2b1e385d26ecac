package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// pollEvery is the interval at which a waiting Source polls a store without Watch. A store with
// Watch looks again after it when something has happened. So it bounds how late a worker sees a
// retry that became due.
const pollEvery = 50 * time.Millisecond

// Source makes one or several queues in a store a [nixie.Source]. Several queues share their worker
// fairly: they are claimed first alternately, and a queue gets more than its share of a batch only
// when the others have no work.
type Source struct {
	queue Queue
	store Features
	names []string
	round atomic.Uint64 // counts claims: each begins with the next queue
	empty emptyQueues

	owner    atomic.Pointer[string] // of the leases of this process; nil before the first
	breakers breakers
}

// NewSource makes a source of the named queues of a store. They need not exist yet.
func NewSource(q Queue, names ...string) *Source {
	return &Source{queue: q, store: q.Features(), names: names, empty: emptyQueues{by: make([]emptyQueue, len(names))}}
}

// Name returns the name of the queue, or the names joined by commas.
func (s *Source) Name() string { return strings.Join(s.names, ",") }

// Receive claims, and waits up to want.Wait for the first message.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := s.receive(ctx, want)
	s.learnOwner(got)
	return got, err
}

// learnOwner notes the owner of the leases of this process.
func (s *Source) learnOwner(got []*nixie.Delivery) {
	if len(got) > 0 && s.owner.Load() == nil {
		s.owner.Store(&got[0].Lease.Owner)
	}
}

// Exchange implements [lease.Exchanger]. It is one transaction of a store with Exchange, unless the
// source has several queues, or its queue is known to be empty.
func (s *Source) Exchange(ctx context.Context, settlements []nixie.Settlement, want nixie.Want) ([]error, []*nixie.Delivery, error) {
	if s.store.Exchange == nil || len(s.names) != 1 || len(settlements) == 0 || want.Wait > 0 && s.empty.of(0, want.NoSuspects) != nil {
		errs := s.Settle(ctx, settlements)
		got, err := s.Receive(ctx, want)
		return errs, got, err
	}
	wake := s.wake(0)
	errs, got, err := s.store.Exchange(ctx, settlements, s.names[0], want)
	s.learnOwner(got)
	s.note(0, got, want, err, wake)
	if len(got) == 0 && err == nil && want.Wait > 0 {
		got, err = s.Receive(ctx, want)
	}
	return errs, got, err
}

func (s *Source) receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Wait <= 0 {
		s.empty.forget()
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

// errOver ends a wait.
var errOver = errors.New("over")

// pause waits until a claim may find work. It returns the deliveries that the store hands out
// meanwhile.
func (s *Source) pause(ctx context.Context, want nixie.Want, end <-chan time.Time) ([]*nixie.Delivery, error) {
	if s.store.Watch == nil {
		defer s.empty.forget()
		poll := time.NewTimer(pollEvery)
		defer poll.Stop()
		return nil, s.empty.wait(ctx, end, poll.C, want.NoSuspects)
	}
	idle := s.empty.of(0, want.NoSuspects)
	if s.store.Await == nil || len(s.names) > 1 || idle == nil {
		return nil, s.empty.wait(ctx, end, nil, want.NoSuspects)
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

// Patience implements [lease.Listener]. Many workers that wait for a store with Watch must not wake
// all the time for nothing.
func (s *Source) Patience() time.Duration {
	if s.store.Watch == nil {
		return 0
	}
	return watchedWait
}

// watchedWait is the longest wait of a worker for a store with Watch.
const watchedWait = 10 * time.Second

// Extend renews leases.
func (s *Source) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return s.queue.Extend(ctx, ds, lease)
}

// Settle applies decisions.
func (s *Source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	return s.queue.Settle(ctx, settlements)
}

// wake returns the channel of Wake for a queue. It is never closed if the store has no Wake.
func (s *Source) wake(i int) <-chan struct{} {
	if s.store.Wake != nil {
		return s.store.Wake(s.names[i])
	}
	return make(chan struct{})
}

// claim claims the share of each queue, and then more from the queues that have more. After an
// error it returns the deliveries that it has, without the error: the next call will meet it again.
func (s *Source) claim(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	n := len(s.names)
	if n == 1 {
		return s.claimOne(ctx, 0, want)
	}
	first := int(s.round.Add(1) % uint64(n))
	share := (want.Max + n - 1) / n
	parts := make([][]*nixie.Delivery, n)
	for i, all := 0, 0; i < 2*n; i++ {
		if i == n {
			share = want.Max // the second round: some queues did not use their shares
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
			return alternate(parts), nil
		}
	}
	return alternate(parts), nil
}

// claimOne claims from one queue, unless it is known to be empty.
func (s *Source) claimOne(ctx context.Context, i int, want nixie.Want) ([]*nixie.Delivery, error) {
	if s.empty.of(i, want.NoSuspects) != nil {
		return nil, nil
	}
	wake := s.wake(i)
	got, err := s.queue.Claim(ctx, s.names[i], want)
	s.note(i, got, want, err, wake)
	return got, err
}

// note notes after a claim whether the queue is empty until the channel is closed.
func (s *Source) note(i int, got []*nixie.Delivery, want nixie.Want, err error, wake <-chan struct{}) {
	if err == nil && (len(got) == 0 || s.store.Watch != nil && tookAll(got, want.Max)) {
		s.empty.begin(i, want.NoSuspects, wake)
	}
}

// tookAll reports whether a claim left no due message in the queue. A claim leaves others when it
// returns suspects, or when the bodies are large.
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

// alternate joins lists: the first of each, then the second of each, and so on. So a short list
// does not wait until a long one is done.
func alternate(lists [][]*nixie.Delivery) (all []*nixie.Delivery) {
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

// KeepBreaker implements [lease.BreakerKeeper]. A process that has claimed nothing has no breakers.
func (s *Source) KeepBreaker(ctx context.Context, change nixie.BreakerChange) error {
	owner := s.owner.Load()
	if s.store.Documents == nil || owner == nil {
		return nil
	}
	return s.breakers.keep(ctx, s.store.Documents, *owner, change)
}

// Stopping implements [lease.Stopper].
func (s *Source) Stopping(ctx context.Context, told bool) error {
	if s.store.Stopping == nil {
		return nil
	}
	return s.store.Stopping(ctx, told)
}

// Policies implements [lease.PolicyKeeper].
func (s *Source) Policies(ctx context.Context) (map[string]string, error) {
	queues, err := s.queue.Queues(ctx, QueueQuery{Names: append([]string{}, s.names...), Settings: true}) // no names are no queues, not all
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for i := range queues {
		if q := &queues[i]; q.Settings.Policy != "" {
			texts[q.Name] = q.Settings.Policy
		}
	}
	return texts, nil
}

// Canceled implements [lease.CancelTeller]. The audit tells who canceled a message.
func (s *Source) Canceled(ctx context.Context, ids []nixie.ID) (map[nixie.ID]lease.Cancel, error) {
	audit, ok := s.queue.(AuditLog)
	if s.store.Canceled != nil && ok {
		var err error
		if ids, err = s.store.Canceled(ctx, ids); err != nil {
			return nil, err
		}
	}
	if !ok || len(ids) == 0 {
		return nil, nil
	}
	entries, _, err := audit.Audit(ctx, AuditFilter{Events: []Event{OnCancel}, Subjects: ids}, Page{Limit: len(ids)})
	found := map[nixie.ID]lease.Cancel{}
	for i := range entries {
		found[entries[i].Subject] = lease.Cancel{By: entries[i].Actor, Reason: entries[i].Reason}
	}
	return found, err
}
