package faultdisk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sectors is a chart of unsynced edits by the sectors of the disk they touch.
type sectors struct {
	size   int64
	edits  []edit
	writes map[int64][]int // sector → indices of the writes that touch it
	cuts   []int           // indices of the cuts
}

func chart(edits []edit, size int64) sectors {
	c := sectors{size: size, edits: edits, writes: map[int64][]int{}}
	for i, e := range edits {
		if e.cut {
			c.cuts = append(c.cuts, i)
			continue
		}
		for s := e.offset / size; s*size < e.offset+int64(len(e.data)); s++ {
			c.writes[s] = append(c.writes[s], i)
		}
	}
	return c
}

// scatter returns the file after its sectors were written back independently.
func (f *inode) scatter(rng *rand.Rand, sector int64) []byte {
	c := chart(f.pending, sector)
	cuts := rng.IntN(len(c.cuts) + 1)
	lengths := c.lengths(int64(len(f.synced)), cuts)
	length := lengths[rng.IntN(len(lengths))]
	return c.compose(f.synced, cuts, length, func(least, most int) int {
		return least + rng.IntN(most-least+1)
	})
}

// lengths returns the lengths that the file had, oldest first, from the moment
// the given number of cuts was done until the next cut.
func (c *sectors) lengths(synced int64, cuts int) []int64 {
	first, length := 0, synced
	if cuts > 0 {
		first = c.cuts[cuts-1]
		length = c.edits[first].offset
		first++
	}
	lengths := []int64{length}
	for _, e := range c.edits[first:] {
		if e.cut {
			break
		}
		if end := e.offset + int64(len(e.data)); end > length {
			length = end
			lengths = append(lengths, length)
		}
	}
	return lengths
}

// compose builds a file of which the first cuts cuts are durable, with the
// given length. For each sector, choose says how many of the writes to it
// are, between the least and the most that can be.
func (c *sectors) compose(synced []byte, cuts int, length int64, choose func(least, most int) int) []byte {
	image := slices.Clone(synced)
	for _, i := range c.cuts[:cuts] {
		if from := c.edits[i].offset; from < int64(len(image)) {
			clear(image[from:])
		}
	}
	image = resize(image, max(length, int64(len(image))))
	for _, s := range slices.Sorted(maps.Keys(c.writes)) {
		least, most := c.bounds(s, cuts)
		c.write(image, synced, s, cuts, c.writes[s][:choose(least, most)])
	}
	return image[:length]
}

// bounds returns how many of the writes to a sector are durable at least,
// because a durable cut of the sector followed them, and at most, because a cut
// that is not durable came before the others and gave them a new inode.
func (c *sectors) bounds(sector int64, cuts int) (int, int) {
	writes := c.writes[sector]
	least, most := 0, len(writes)
	for i, cut := range c.cuts {
		if c.edits[cut].offset >= (sector+1)*c.size {
			continue
		}
		before, _ := slices.BinarySearch(writes, cut)
		if i < cuts {
			least = before
		} else {
			most = min(most, before)
		}
	}
	return min(least, most), most
}

// write brings a sector of the image to the state after the given writes and
// the durable cuts.
func (c *sectors) write(image, synced []byte, sector int64, cuts int, writes []int) {
	from := sector * c.size
	if from >= int64(len(image)) || len(writes) == 0 {
		return
	}
	to := min(from+c.size, int64(len(image)))
	clear(image[from:to])
	if from < int64(len(synced)) {
		copy(image[from:to], synced[from:])
	}
	cut := 0
	for _, i := range writes {
		for ; cut < cuts && c.cuts[cut] < i; cut++ {
			clearFrom(image, c.edits[c.cuts[cut]].offset, from, to)
		}
		e := c.edits[i]
		start, end := max(from, e.offset), min(to, e.offset+int64(len(e.data)))
		if start < end {
			copy(image[start:end], e.data[start-e.offset:])
		}
	}
	for ; cut < cuts; cut++ {
		clearFrom(image, c.edits[c.cuts[cut]].offset, from, to)
	}
}

// clearFrom zeroes the part of image[from:to] that lies behind a cut.
func clearFrom(image []byte, cut, from, to int64) {
	if start := max(from, cut); start < to {
		clear(image[start:to])
	}
}
