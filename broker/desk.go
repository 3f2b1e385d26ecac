package broker

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// desk is room for what one call of Settle needs.
type desk struct {
	all   []verdict
	plain []*verdict
	acked []*Record
}

// desk finds the items of settlements. One that is given twice is settled once.
func (s *Source) desk(settlements []nixie.Settlement) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &desk{}
	if n := len(s.desks); n > 0 {
		k, s.desks = s.desks[n-1], s.desks[:n-1]
	}
	k.all = slices.Grow(k.all, len(settlements))[:len(settlements)]
	k.plain = slices.Grow(k.plain, len(settlements))
	for n := range settlements {
		v := &k.all[n]
		v.st = &settlements[n]
		v.item, v.at, v.err = s.held(v.st.Delivery)
		if v.err == nil && v.item.settling {
			v.err = nixie.Errorf(nixie.CodeConflict, "message %s is being settled by another call", v.st.Delivery.ID)
		}
		if v.err == nil {
			v.item.settling, v.mine = true, true
		}
	}
	return k
}

// clear makes a desk ready for another call.
func (s *Source) clear(k *desk) {
	clear(k.all)
	clear(k.plain)
	k.all, k.plain = k.all[:0], k.plain[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.desks) < desksKept {
		s.desks = append(s.desks, k)
	}
}

// desksKept is as many as there are calls at a time, usually.
const desksKept = 4
