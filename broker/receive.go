package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Receive hands out what may go, and asks the broker for more where there is room.
func (s *Source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = nixie.DefaultLease
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if g, ok := s.c.Driver.(Grouper); ok {
		g.Parallel(want.Parallel)
	}
	s.sweep(ctx)
	end := s.c.Clock().Add(want.Wait)
	for last, first := false, true; ; first = false {
		now := s.c.Clock()
		waiting, stop := context.WithCancel(ctx)
		got, next := s.take(want, now, stop)
		wait := max(min(end.Sub(now), next.wait), 0)
		last = last || next.suspects && !first // that it wants fresh ones only may be over
		if len(got) > 0 || last || ctx.Err() != nil {
			stop()
			return got, ctx.Err()
		}
		last = end.Sub(now) <= 0
		err := s.more(waiting, next.room, wait, now)
		stop()
		if err != nil {
			return nil, err
		}
	}
}

// prospect is what a receiver that got nothing can do.
type prospect struct {
	room int           // for so many records; 0: wait until something is settled
	wait time.Duration // until something is due

	suspects bool // there are some, and they are not wanted
}

// take hands out what is there. Otherwise stop is called as soon as it makes sense
// to look again.
func (s *Source) take(want nixie.Want, now time.Time, stop func()) (got []*nixie.Delivery, next prospect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = stop
	for i := s.waiting.dueBy(now); i != nil; i = s.waiting.dueBy(now) {
		s.offer(i)
	}
	next.wait = nixie.MaxDelay
	if len(s.waiting) > 0 {
		next.wait = s.waiting[0].trouble.due.Sub(now)
	}
	if s.halted {
		return nil, next
	}
	if next.suspects = s.suspect.len() > 0; next.suspects {
		if n := s.group(want); n > 0 {
			return s.lendFirst(&s.suspect, n, want, now), next
		}
		return nil, next // no fresh ones either: the hand is to be empty soon
	}
	if n := min(s.ready.len(), want.Max); n > 0 {
		return s.lendFirst(&s.ready, n, want, now), next
	}
	if s.bytes < s.c.MaxBytes {
		next.room = min(s.c.MaxInHand-s.inHand, want.Max)
	}
	if s.careful {
		next.room = min(next.room, 1-s.inHand)
	}
	return nil, next
}

// group is how many of the suspects may be handed out together: all that are to be
// judged, which come before the others, else as many as the first one allows.
func (s *Source) group(want nixie.Want) int {
	list := s.suspect.items[s.suspect.head:]
	slices.SortStableFunc(list, func(a, b *item) int { return cmp.Compare(a.rank(), b.rank()) })
	first := list[0].rank()
	alike := slices.IndexFunc(list, func(i *item) bool { return i.rank() != first })
	if alike < 0 {
		alike = len(list)
	}
	switch {
	case first == 0:
		return alike
	case want.Fresh:
		return 0
	}
	return min(alike, max(want.Max, 1), nixie.GroupOf(want.Parallel, first))
}

// rank says which suspects come together, and before others: 0 those to be judged, then
// by crashes.
func (i *item) rank() int {
	if !i.judged && i.record.Crashes > 0 {
		return 0
	}
	if i.delivery != nil {
		return i.delivery.Crashes
	}
	return crashes(i.record)
}

// lendFirst hands out the first ones of a queue.
func (s *Source) lendFirst(from *fifo, n int, want nixie.Want, now time.Time) []*nixie.Delivery {
	got := make([]*nixie.Delivery, n)
	expires, room := now.Add(want.Lease), loans{left: n}
	for i := range got {
		got[i] = s.lend(from.pop(), now, expires, &room)
	}
	return got
}

// more asks the broker, or waits where there is no room.
func (s *Source) more(ctx context.Context, room int, wait time.Duration, now time.Time) error {
	if room <= 0 {
		pause(ctx, wait)
		return nil
	}
	records, err := s.c.Driver.Receive(ctx, room, wait)
	if len(records) > 0 {
		records, err = s.one(ctx, records, err)
		s.admit(records)
	}
	return err
}

// one keeps a single record of those that vanished with a holder, where the broker
// takes the rest back: another crash is to cost the neighbours nothing.
func (s *Source) one(ctx context.Context, records []Record, err error) ([]Record, error) {
	if len(records) == 1 || !s.vanished(records) {
		return records, err
	}
	var rest []*Record
	for n := range records[1:] {
		rest = append(rest, &records[1+n])
	}
	for _, refused := range s.c.Driver.Nack(ctx, rest, 0) {
		if refused != nil && nixie.CodeOf(refused) != nixie.CodeLeaseLost {
			return records, errors.Join(err, refused) // then all are in hand
		}
	}
	return records[:1], err
}

// vanished reports whether records that can be given back one by one had been with
// a holder that vanished.
func (s *Source) vanished(records []Record) bool {
	return s.features.Nack && slices.ContainsFunc(records, func(r Record) bool { return r.Crashes > 0 })
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// admit takes records in hand.
func (s *Source) admit(records []Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.careful = s.vanished(records)
	items := s.newSlab(records).items
	for n := range items {
		i := &items[n]
		s.inHand++
		s.bytes += i.size
		if s.lanes.enter(i) {
			s.offer(i)
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

// Extend asks the broker which records are still ours.
func (s *Source) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := make([]error, len(ds))
	items := s.find(ds, errs)
	var asked []int
	var records []*Record
	for n, i := range items {
		if i != nil {
			asked = append(asked, n)
			records = append(records, i.record)
		}
	}
	for n, err := range s.c.Driver.Extend(ctx, records, lease) {
		errs[asked[n]] = err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, d := range ds {
		if nixie.CodeOf(errs[n]) == nixie.CodeLeaseLost {
			s.drop(d)
		}
		if items[n] != nil {
			s.leave(items[n].slab)
		}
	}
	return errs
}

// find looks the items of deliveries up, and has their slabs kept; a lease that is
// over is answered.
func (s *Source) find(ds []*nixie.Delivery, errs []error) []*item {
	items := make([]*item, len(ds))
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, d := range ds {
		if items[n], _, errs[n] = s.held(d); items[n] != nil {
			items[n].slab.uses++
		}
	}
	return items
}

// drop forgets an item that is lost, if its lease is still this one and nobody is
// settling it, who will find that out as well. The source's mutex is held.
func (s *Source) drop(d *nixie.Delivery) {
	if i, at, err := s.held(d); err == nil && !i.settling {
		s.takeBack(at)
		s.forget(i)
		s.interrupt()
	}
}
