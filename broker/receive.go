package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// Receive delivers what is ready, and receives more from the broker while there is space.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = nixie.DefaultLease
	}
	select {
	case s.receiving <- struct{}{}:
		defer func() { <-s.receiving }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if g, ok := s.c.Driver.(Grouper); ok {
		g.Parallel(want.Parallel)
	}
	s.dropLostItems(ctx)
	asked := s.c.Clock()
	end := asked.Add(want.Wait)
	if err := s.begin(want.Lease, asked); err != nil {
		return nil, err
	}
	for last, first := false, true; ; first = false {
		now := s.c.Clock()
		waiting, stop := context.WithCancel(ctx)
		got, next := s.takeReady(want, now, stop)
		wait := max(min(end.Sub(now), next.wait), 0)
		last = last || next.suspectsWait && !first // the caller may take suspects by now: return, and let it ask again
		if len(got) > 0 || last || ctx.Err() != nil {
			stop()
			if got, err := s.renewWaited(ctx, got, want.Lease); len(got) > 0 || err != nil || last || ctx.Err() != nil {
				return got, errors.Join(err, ctx.Err())
			}
			continue
		}
		last = end.Sub(now) <= 0
		err := s.receiveMore(waiting, Want{next.space, wait, want.Lease})
		stop()
		if err != nil {
			return nil, err
		}
	}
}

// begin notes that a call of Receive begins.
func (s *Source) begin(lease time.Duration, now time.Time) error {
	if most := s.features.MaxLease; most > 0 && lease > most {
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: %s keeps a record for %s at most", lease, s.features.System, most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receives++
	s.lease, s.asked = lease, now
	return nil
}

// waitPlan tells a Receive that found nothing ready what it can do.
type waitPlan struct {
	space int           // how many records it may ask for; 0: wait until a settlement makes space
	wait  time.Duration // until the next delayed item is due

	suspectsWait bool // suspects are ready, and the caller does not want them
}

// takeReady delivers ready items. If there are none, another call invokes stop as soon as a new
// look makes sense.
func (s *Source) takeReady(want nixie.Want, now time.Time, stop func()) (got []*nixie.Delivery, next waitPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = stop
	for i := s.delayed.dueBy(now); i != nil; i = s.delayed.dueBy(now) {
		s.makeReady(i)
	}
	next.wait = nixie.MaxDelay
	if len(s.delayed) > 0 {
		next.wait = s.delayed[0].retry.due.Sub(now)
	}
	if s.halted {
		return nil, next
	}
	if next.suspectsWait = s.suspects.len() > 0; next.suspectsWait {
		if n := s.suspectGroup(want); n > 0 {
			return s.deliverFirst(&s.suspects, n, want, now), next
		}
		return nil, next // nothing else either, so that the worker's hand is soon empty for the suspects
	}
	if n := min(s.ready.len(), want.Max); n > 0 {
		return s.deliverFirst(&s.ready, n, want, now), next
	}
	if s.bytes < s.c.MaxBytes {
		next.space = min(s.c.MaxInHand-s.inHand, want.Max)
	}
	if s.oneAtATime {
		next.space = min(next.space, 1-(s.inHand-len(s.delayed)))
	}
	return nil, next
}

// suspectGroup returns how many suspects may be delivered together. Those that a worker is still to
// judge come first, all at once. After them the first one decides how many more run with it.
func (s *Source) suspectGroup(want nixie.Want) int {
	list := s.suspects.items[s.suspects.head:]
	slices.SortStableFunc(list, func(a, b *item) int { return cmp.Compare(a.suspicion(), b.suspicion()) })
	first := list[0].suspicion()
	alike := slices.IndexFunc(list, func(i *item) bool { return i.suspicion() != first })
	if alike < 0 {
		alike = len(list)
	}
	switch {
	case first == 0:
		return alike
	case want.NoSuspects:
		return 0
	}
	return min(alike, max(want.Max, 1), lease.GroupSize(want.Parallel, first))
}

// suspicion sorts suspects, and puts them into groups: 0 if a worker is still to judge the crash,
// otherwise the number of crashes.
func (i *item) suspicion() int {
	if !i.judged && i.record.Crashes > 0 {
		return 0
	}
	if i.delivery != nil {
		return i.delivery.Crashes
	}
	return totalCrashes(i.record)
}

// deliverFirst delivers the first n items of a queue.
func (s *Source) deliverFirst(from *fifo, n int, want nixie.Want, now time.Time) []*nixie.Delivery {
	got := make([]*nixie.Delivery, n)
	expires, alloc := now.Add(want.Lease), deliveryAllocator{left: n}
	if !s.features.Held { // the lease at the broker began after asked
		expires = s.asked.Add(want.Lease)
	}
	for i := range got {
		got[i] = s.deliver(from.pop(), now, expires, &alloc)
	}
	return got
}

// receiveMore asks the broker for records, or waits if there is no space.
func (s *Source) receiveMore(ctx context.Context, want Want) error {
	if want.Max <= 0 {
		waitFor(ctx, want.Wait)
		return nil
	}
	records, err := s.c.Driver.Receive(ctx, want)
	if len(records) > 0 {
		s.complete(records)
		records, err = s.keepOne(ctx, records, err)
		s.admit(records)
	}
	return err
}

// complete fills in what a driver does not tell of records: that they are retries which waited on
// their own channel, and which deliveries of a broker that only counts may have been crashes.
func (s *Source) complete(records []Record) {
	f := &s.features
	if !f.CountsAll && f.MaxPublishDelay == 0 {
		return
	}
	for n := range records {
		r := &records[n]
		if source, waited := IsRetry(r); waited && f.MaxPublishDelay > 0 && source == r.Channel {
			r.Source = source
		}
		if f.CountsAll {
			r.Crashes, r.Alone = r.PriorDeliveries, lease.AloneTwice(countedGroup, r.PriorDeliveries)
		}
	}
}

// countedGroup is the number of records that may have been in hand together, where a broker only
// counts deliveries. A record is to blame after log2 of it and one more crash: deploys count there
// as crashes do, and so do crashes of records that were received with a killer.
const countedGroup = 16

// keepOne keeps one record of those that vanished with a holder, and gives the rest back if the
// broker takes them. If that record kills this holder too, the others pay nothing.
func (s *Source) keepOne(ctx context.Context, records []Record, err error) ([]Record, error) {
	if len(records) == 1 || !s.features.Nack || s.features.CountsAll || !s.anyAbandoned(records) {
		return records, err
	}
	var rest []Return
	for n := range records[1:] {
		rest = append(rest, Return{Record: &records[1+n]})
	}
	for _, refused := range s.c.Driver.Nack(ctx, rest) {
		if refused != nil && nixie.CodeOf(refused) != nixie.CodeLeaseLost {
			return records, errors.Join(err, refused) // all of them stay in hand
		}
	}
	return records[:1], err
}

// anyAbandoned reports whether some of these records vanished with a holder, and may be received
// one by one.
func (s *Source) anyAbandoned(records []Record) bool {
	return (s.features.Nack || s.features.CountsAll) && slices.ContainsFunc(records, func(r Record) bool { return r.Crashes > 0 })
}

// waitFor waits for d or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// admit makes items of received records.
func (s *Source) admit(records []Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oneAtATime = s.anyAbandoned(records)
	items := s.newChunk(records).items
	for n := range items {
		i := &items[n]
		s.inHand++
		s.bytes += i.size
		if s.serial.enter(i) {
			s.makeReady(i)
		}
	}
}

func sizeOf(r *Record) int64 {
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Name) + len(h.Value)
	}
	return int64(size)
}
