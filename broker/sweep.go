package broker

import (
	"container/heap"
	"context"
	"slices"

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
	idle := s.undelivered()
	records := make([]*Record, len(idle))
	for n, i := range idle {
		records[n] = i.record
	}
	lost := map[*item]bool{}
	for n, err := range s.c.Driver.Extend(ctx, records, 0) {
		if nixie.CodeOf(err) == nixie.CodeLeaseLost {
			lost[idle[n]] = true
		}
	}
	if len(lost) > 0 {
		s.remove(lost)
	}
}

// undelivered lists the items that no worker has.
func (s *Source) undelivered() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.ready.items[s.ready.head:], s.suspects.items[s.suspects.head:], s.delayed)
	for q := range s.serial.all() {
		all = append(all, q.behind...)
	}
	return all
}

// remove forgets items that no worker has.
func (s *Source) remove(lost map[*item]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
