package broker

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// dropLostItems forgets items that no worker has and that the driver has lost, or is about to lose.
// An item that a worker has is forgotten when the worker extends or settles its lease.
func (s *Source) dropLostItems(ctx context.Context) {
	select {
	case <-s.lost:
	default:
		return
	}
	s.lost = s.c.Driver.Lost()
	_ = s.extendUndelivered(ctx, 0) // other errors show when a worker extends
}

// extendUndelivered renews the leases of items that no worker has, in one call, and forgets those
// that are lost. A lease of 0 only asks.
func (s *Source) extendUndelivered(ctx context.Context, lease time.Duration) (err error) {
	s.mu.Lock()
	idle := s.undelivered()
	records := make([]*Record, len(idle))
	for n, i := range idle {
		i.chunk.uses++
		records[n] = i.record
	}
	s.mu.Unlock()
	if len(idle) == 0 {
		return nil
	}
	lost := map[*item]bool{}
	for n, answer := range s.c.Driver.Extend(ctx, records, lease) {
		switch {
		case nixie.CodeOf(answer) == nixie.CodeLeaseLost:
			lost[idle[n]] = true
		case answer != nil:
			err = answer
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(lost) > 0 {
		s.remove(lost)
	}
	for _, i := range idle {
		s.release(i.chunk)
	}
	return err
}

// undelivered lists the items that no worker has. The caller holds the mutex.
func (s *Source) undelivered() []*item {
	all := slices.Concat(s.ready.items[s.ready.head:], s.suspects.items[s.suspects.head:], s.delayed)
	for q := range s.serial.all() {
		all = append(all, q.behind...)
	}
	return all
}

// remove forgets lost items, without those that a worker has got meanwhile. The caller holds the
// mutex.
func (s *Source) remove(lost map[*item]bool) {
	idle := map[*item]bool{}
	for _, i := range s.undelivered() {
		idle[i] = true
	}
	maps.DeleteFunc(lost, func(i *item, _ bool) bool { return !idle[i] })
	gone := func(i *item) bool { return lost[i] }
	queued := map[*item]bool{}
	for q := range s.serial.all() {
		for _, i := range q.behind {
			queued[i] = true
		}
		q.behind = slices.DeleteFunc(q.behind, gone)
	}
	s.ready.items = slices.DeleteFunc(s.ready.items[s.ready.head:], gone)
	s.suspects.items = slices.DeleteFunc(s.suspects.items[s.suspects.head:], gone)
	s.ready.head, s.suspects.head = 0, 0
	s.delayed = slices.DeleteFunc(s.delayed, gone)
	heap.Init(&s.delayed)
	for i := range lost {
		s.inHand--
		s.bytes -= i.size
		if !queued[i] { // it was the one of its serial queue that may run
			s.letNext(i)
		}
		s.release(i.chunk)
	}
}
