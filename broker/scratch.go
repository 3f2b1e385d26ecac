package broker

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// scratch holds the slices that one call of Settle needs. Later calls use them again.
type scratch struct {
	all   []openSettlement
	plain []*openSettlement
	acked []*Record
}

// lookUpAll finds the items of settlements. A delivery that is named twice is settled once.
func (s *Source) lookUpAll(settlements []nixie.Settlement) *scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &scratch{}
	if n := len(s.freeScratch); n > 0 {
		k, s.freeScratch = s.freeScratch[n-1], s.freeScratch[:n-1]
	}
	k.all = slices.Grow(k.all, len(settlements))[:len(settlements)]
	k.plain = slices.Grow(k.plain, len(settlements))
	for n := range settlements {
		v := &k.all[n]
		v.st = &settlements[n]
		v.item, v.slot, v.err = s.lookUp(v.st.Delivery)
		if v.err == nil && v.item.settling {
			v.err = nixie.Errorf(nixie.CodeConflict, "message %s is being settled by another call", v.st.Delivery.ID)
		}
		if v.err == nil {
			v.item.settling, v.mine = true, true
		}
	}
	return k
}

// putBack empties a scratch and keeps it for another call.
func (s *Source) putBack(k *scratch) {
	clear(k.all)
	clear(k.plain)
	k.all, k.plain = k.all[:0], k.plain[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.freeScratch) < scratchKept {
		s.freeScratch = append(s.freeScratch, k)
	}
}

// scratchKept is the usual number of concurrent calls.
const scratchKept = 4
