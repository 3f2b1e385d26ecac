package broker

import (
	"container/heap"
	"context"
	"slices"

	"github.com/nixie-go/nixie"
)

// sweep drops what is lost, or about to be, of that which nobody has been handed. What somebody has
// is dropped when its lease is to be extended or settled.
func (s *Source) sweep(ctx context.Context) {
	select {
	case <-s.lost:
	default:
		return
	}
	s.lost = s.c.Driver.Lost()
	idle := s.idle()
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

// idle lists the items that nobody has been handed.
func (s *Source) idle() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.ready.items[s.ready.head:], s.suspect.items[s.suspect.head:], s.waiting)
	for n := range s.lanes.all {
		all = append(all, s.lanes.all[n].queue...)
	}
	return all
}

// remove drops items that nobody has been handed.
func (s *Source) remove(lost map[*item]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := func(i *item) bool { return lost[i] }
	queued := map[*item]bool{}
	for n := range s.lanes.all {
		l := &s.lanes.all[n]
		for _, i := range l.queue {
			queued[i] = true
		}
		l.queue = slices.DeleteFunc(l.queue, gone)
	}
	s.ready.items = slices.DeleteFunc(s.ready.items[s.ready.head:], gone)
	s.suspect.items = slices.DeleteFunc(s.suspect.items[s.suspect.head:], gone)
	s.ready.head, s.suspect.head = 0, 0
	s.waiting = slices.DeleteFunc(s.waiting, gone)
	heap.Init(&s.waiting)
	for i := range lost {
		s.inHand--
		s.bytes -= i.size
		if !queued[i] { // it was the one of its lane that could go
			s.letGo(i)
		}
		s.leave(i.slab)
	}
}
