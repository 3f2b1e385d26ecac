package faultdisk

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Mode says which unsynced changes a power loss leaves behind. Synced changes
// are there in every mode.
type Mode int

// The modes. Those with a choice to make take it from the seed.
const (
	// None loses every unsynced change, names included.
	None Mode = iota
	// All keeps every change, as a killed process would.
	All
	// Prefix keeps the changes up to a random one, in order over all files.
	Prefix
	// Subset writes back a random set of sectors, each with its content at a
	// random moment, with a length and names of random age.
	Subset
	// Torn keeps everything but random sectors of the last unsynced write.
	Torn
	// Length keeps bytes and names, but each file has its synced length.
	Length
	// Chunk keeps lengths and names, but what unsynced writes appended is
	// zeros or stale bytes.
	Chunk
	// DirLost keeps bytes and lengths, but loses a random number of the latest
	// unsynced changes of names, at least one if there are any.
	DirLost
)

var modeNames = [...]string{"none", "all", "prefix", "subset", "torn", "length", "chunk", "dirlost"}

// String returns the word for the mode.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{None, All, Prefix, Subset, Torn, Length, Chunk, DirLost}
}

// random tells whether different seeds give different images.
func (m Mode) random() bool { return m != None && m != All && m != Length }

// image returns the files after a power loss, by name.
func (r *replay) image(mode Mode, seed uint64) (map[string][]byte, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(r.ops)<<8|uint64(mode)))
	keep := len(r.renames)
	var build func(f *inode) []byte
	switch mode {
	case None:
		keep = 0
		build = func(f *inode) []byte { return slices.Clone(f.synced) }
	case All:
		build = (*inode).whole
	case Prefix:
		last := r.randomOp(rng)
		keep = countUntil(r.renames, last)
		build = func(f *inode) []byte { return f.until(last) }
	case Subset:
		keep = rng.IntN(len(r.renames) + 1)
		sector := randomSector(rng)
		build = func(f *inode) []byte { return f.scatter(rng, sector) }
	case Torn:
		last := r.lastWrite()
		build = func(f *inode) []byte { return f.torn(rng, last) }
	case Length:
		build = (*inode).oldLength
	case Chunk:
		build = func(f *inode) []byte { return f.chunk(rng) }
	case DirLost:
		if keep > 0 {
			keep = rng.IntN(keep)
		}
		build = (*inode).whole
	default:
		return nil, fmt.Errorf("faultdisk: unknown %v", mode)
	}
	names := r.names(keep)
	files := make(map[string][]byte, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		files[name] = build(r.inodes[names[name]])
	}
	return files, nil
}

// randomOp picks the number of an unsynced change, or one before all of them.
func (r *replay) randomOp(rng *rand.Rand) int {
	var ops []int
	for _, f := range r.inodes {
		for _, e := range f.pending {
			ops = append(ops, e.op)
		}
	}
	for _, n := range r.renames {
		ops = append(ops, n.op)
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	if i := rng.IntN(len(ops) + 1); i > 0 {
		return ops[i-1]
	}
	return 0
}

func countUntil(renames []rename, op int) int {
	n := 0
	for n < len(renames) && renames[n].op <= op {
		n++
	}
	return n
}

// lastWrite returns the number of the last unsynced write to a file that still
// has a name, 0 if there is none.
func (r *replay) lastWrite() int {
	last := 0
	for _, number := range r.live {
		for _, e := range r.inodes[number].pending {
			if !e.cut {
				last = max(last, e.op)
			}
		}
	}
	return last
}

func randomSector(rng *rand.Rand) int64 {
	if rng.IntN(2) == 0 {
		return 512
	}
	return page
}

func (f *inode) whole() []byte {
	return applyAll(slices.Clone(f.synced), f.pending)
}

func (f *inode) until(op int) []byte {
	image := slices.Clone(f.synced)
	for _, e := range f.pending {
		if e.op <= op {
			image = e.apply(image)
		}
	}
	return image
}

// torn keeps all changes but some sectors of the write number last.
func (f *inode) torn(rng *rand.Rand, last int) []byte {
	image := slices.Clone(f.synced)
	for _, e := range f.pending {
		if e.op != last {
			image = e.apply(image)
			continue
		}
		for _, part := range e.tear(rng) {
			image = part.apply(image)
		}
		// The length is written separately from the bytes.
		if end := e.offset + int64(len(e.data)); rng.IntN(2) == 0 && end > int64(len(image)) {
			image = resize(image, end)
		}
	}
	return image
}

// tear returns what reached the disk of a write that was under way: a random
// beginning, or random sectors; never all of it.
func (e edit) tear(rng *rand.Rand) []edit {
	sector := randomSector(rng)
	var parts []edit
	for from, end := e.offset, e.offset+int64(len(e.data)); from < end; {
		to := min((from/sector+1)*sector, end)
		part := e
		part.offset, part.data = from, e.data[from-e.offset:to-e.offset]
		parts = append(parts, part)
		from = to
	}
	if rng.IntN(2) == 0 {
		return parts[:rng.IntN(len(parts))]
	}
	missing := rng.IntN(len(parts))
	kept := parts[:0:0]
	for i, part := range parts {
		if i != missing && rng.IntN(2) == 0 {
			kept = append(kept, part)
		}
	}
	return kept
}

// oldLength has every byte at its offset within the synced length. Cuts are
// changes of length and did not happen, so bytes written behind a cut are
// elsewhere.
func (f *inode) oldLength() []byte {
	c := chart(f.pending, page)
	return c.compose(f.synced, 0, int64(len(f.synced)), func(_, n int) int { return n })
}

// chunk has the present length, but nothing of what was appended.
func (f *inode) chunk(rng *rand.Rand) []byte {
	image := f.whole()
	kept := len(f.synced)
	for _, e := range f.pending {
		if e.cut {
			kept = min(kept, int(e.offset))
		}
	}
	if kept >= len(image) {
		return image
	}
	clear(image[kept:])
	if rng.IntN(2) == 0 {
		for i := kept; i < len(image); i++ {
			image[i] = byte(rng.Uint32())
		}
	}
	return image
}
