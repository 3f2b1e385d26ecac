package broker

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// slab is what one call of the driver brought. Its memory is used again when nothing
// of it is in hand any more: records come and go too fast to leave that to the
// garbage collector.
type slab struct {
	records []Record
	items   []item
	uses    int // items that are not done with, and calls that look at one
}

// Bounds of the slabs that are kept for later.
const (
	slabsKept  = 4
	slabLength = nixie.MaxBatch
)

// newSlab makes items of records. The source's mutex is held.
func (s *Source) newSlab(records []Record) *slab {
	b := &slab{}
	if n := len(s.slabs); n > 0 {
		b, s.slabs = s.slabs[n-1], s.slabs[:n-1]
	}
	b.records, b.items, b.uses = records, slices.Grow(b.items, len(records))[:len(records)], len(records)
	for n := range records {
		b.items[n] = item{slab: b, record: &records[n], suspect: crashes(&records[n]) > 0, size: sizeOf(&records[n])}
	}
	return b
}

// leave ends one use of a slab. The source's mutex is held.
func (s *Source) leave(b *slab) {
	if b.uses--; b.uses > 0 {
		return
	}
	if r, ok := s.c.Driver.(Recycler); ok {
		r.Recycle(b.records)
	}
	clear(b.items)
	b.records, b.items = nil, b.items[:0]
	if len(s.slabs) < slabsKept && cap(b.items) <= slabLength {
		s.slabs = append(s.slabs, b)
	}
}
