package broker

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// chunk holds the records of one call of the driver, and their items. When no item of it is in hand
// any more, its memory is used again: there are too many records to leave it to the garbage
// collector.
type chunk struct {
	records []Record
	items   []item
	uses    int // items in hand, and calls that use one
	receive int // number of the call of Receive that brought it
}

// Limits of the chunks that are kept for later.
const (
	chunksKept  = 4
	chunkLength = nixie.MaxBatch
)

// newChunk makes items of records. The caller holds the mutex.
func (s *Source) newChunk(records []Record) *chunk {
	b := &chunk{}
	if n := len(s.freeChunks); n > 0 {
		b, s.freeChunks = s.freeChunks[n-1], s.freeChunks[:n-1]
	}
	b.records, b.items, b.uses = records, slices.Grow(b.items, len(records))[:len(records)], len(records)
	b.receive = s.receives
	for n := range records {
		b.items[n] = item{chunk: b, record: &records[n], suspect: totalCrashes(&records[n]) > 0, size: sizeOf(&records[n])}
	}
	return b
}

// release ends one use of a chunk. The caller holds the mutex.
func (s *Source) release(b *chunk) {
	if b.uses--; b.uses > 0 {
		return
	}
	if r, ok := s.c.Driver.(Recycler); ok {
		r.Recycle(b.records)
	}
	clear(b.items)
	b.records, b.items = nil, b.items[:0]
	if len(s.freeChunks) < chunksKept && cap(b.items) <= chunkLength {
		s.freeChunks = append(s.freeChunks, b)
	}
}
