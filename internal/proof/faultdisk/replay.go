package faultdisk

import (
	"cmp"
	"maps"
	"path"
	"slices"
)

// page is the unit in which the cache of the operating system keeps unsynced
// bytes, in bytes.
const page = 4096

// edit is an unsynced change of a file.
type edit struct {
	op     int // number of the change, from 1
	cut    bool
	offset int64 // where data goes, or the new size for a cut
	data   []byte

	// clean tells that a sync failed after the edit: its pages are not on the
	// disk and are taken for written.
	clean bool
}

// inode is a file without its name: what is durable and what came after.
type inode struct {
	synced  []byte
	pending []edit
}

// rename is an unsynced change of a directory: a name that was made to mean an
// inode, or none (0).
type rename struct {
	op    int
	name  string
	inode int
}

// replay is the state of the modelled disk after some number of changes. Its
// images may be built by several goroutines while no other steps.
type replay struct {
	trace   *trace
	ops     int
	inodes  map[int]*inode
	durable map[string]int // names after power loss, were nothing more to come
	live    map[string]int // names as the program sees them
	renames []rename       // from durable to live, in order
}

func newReplay(tr *trace) *replay {
	r := &replay{trace: tr, inodes: map[int]*inode{}, durable: map[string]int{}, live: map[string]int{}}
	for number, e := range tr.before {
		r.inodes[number] = &inode{synced: slices.Clone(e.content)}
		r.durable[e.file] = number
		r.live[e.file] = number
	}
	return r
}

// advance steps until ops changes are done.
func (r *replay) advance(ops int) {
	for r.ops < ops {
		r.step(r.trace.changes[r.ops])
	}
}

func (r *replay) step(c Change) {
	r.ops++
	switch c.Kind {
	case Created:
		r.inodes[c.inode] = &inode{}
		r.name(c.File, c.inode)
	case Written:
		f := r.inodes[c.inode]
		f.pending = append(f.pending, edit{op: r.ops, offset: c.Offset, data: c.Data})
	case Truncated:
		f := r.inodes[c.inode]
		f.pending = append(f.pending, edit{op: r.ops, cut: true, offset: c.Offset})
	case Synced:
		r.inodes[c.inode].sync()
	case SyncFailed:
		f := r.inodes[c.inode]
		for i := range f.pending {
			f.pending[i].clean = true
		}
	case Deleted:
		r.name(c.File, 0)
	case DirSynced:
		r.syncDir(c.File)
	}
	if c.DirSync {
		r.syncDir(path.Dir(c.File))
	}
}

// name makes a name mean an inode, or none.
func (r *replay) name(file string, number int) {
	if number == 0 {
		delete(r.live, file)
	} else {
		r.live[file] = number
	}
	r.renames = append(r.renames, rename{op: r.ops, name: file, inode: number})
}

// syncDir makes the names of a directory durable.
func (r *replay) syncDir(dir string) {
	var left []rename
	for _, n := range r.renames {
		if path.Dir(n.name) != dir {
			left = append(left, n)
			continue
		}
		apply(r.durable, n)
	}
	r.renames = left
}

// names returns the directory with the first n unsynced changes made.
func (r *replay) names(n int) map[string]int {
	names := maps.Clone(r.durable)
	for _, change := range r.renames[:n] {
		apply(names, change)
	}
	return names
}

func apply(names map[string]int, n rename) {
	if n.inode == 0 {
		delete(names, n.name)
	} else {
		names[n.name] = n.inode
	}
}

// sync makes everything durable except pages that are clean only in name.
func (f *inode) sync() {
	if !slices.ContainsFunc(f.pending, func(e edit) bool { return e.clean }) {
		f.synced = applyAll(f.synced, f.pending)
		f.pending = nil
		return
	}
	f.syncAround()
}

// syncAround is sync after a failed one. Lengths and cuts become durable;
// bytes only in pages that were written to again since the failure.
func (f *inode) syncAround() {
	now := applyAll(slices.Clone(f.synced), f.pending)
	dirty := map[int64]bool{}
	shortest := int64(len(f.synced))
	for _, e := range f.pending {
		if e.cut {
			shortest = min(shortest, e.offset)
		}
		for p := e.offset / page; !e.cut && !e.clean && p*page < e.offset+int64(len(e.data)); p++ {
			dirty[p] = true
		}
	}
	synced := make([]byte, len(now))
	copy(synced, f.synced[:min(shortest, int64(len(now)))])
	for p := range dirty {
		if from := p * page; from < int64(len(now)) {
			copy(synced[from:min(from+page, int64(len(now)))], now[from:])
		}
	}
	f.pending = f.cleanOnly(dirty, now)
	f.synced = synced
}

// cleanOnly returns edits that bring the pages that are clean only in name, and
// not dirty as well, to their present content.
func (f *inode) cleanOnly(dirty map[int64]bool, now []byte) []edit {
	latest := map[int64]int{} // page → number of the last change to it
	for _, e := range f.pending {
		for p := e.offset / page; !e.cut && p*page < e.offset+int64(len(e.data)); p++ {
			if !dirty[p] && p*page < int64(len(now)) {
				latest[p] = e.op
			}
		}
	}
	var lost []edit
	for p, op := range latest {
		data := now[p*page : min((p+1)*page, int64(len(now)))]
		lost = append(lost, edit{op: op, offset: p * page, data: data, clean: true})
	}
	slices.SortFunc(lost, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.offset, b.offset))
	})
	return lost
}

// applyAll makes edits to an image in order and returns it; it may reuse the
// image's memory.
func applyAll(image []byte, edits []edit) []byte {
	for _, e := range edits {
		image = e.apply(image)
	}
	return image
}

func (e edit) apply(image []byte) []byte {
	if e.cut {
		return resize(image, e.offset)
	}
	if end := e.offset + int64(len(e.data)); end > int64(len(image)) {
		image = resize(image, end)
	}
	copy(image[e.offset:], e.data)
	return image
}

// resize cuts an image or grows it by zeros.
func resize(image []byte, size int64) []byte {
	if size <= int64(len(image)) {
		return image[:size]
	}
	old := len(image)
	image = slices.Grow(image, int(size)-old)[:size]
	clear(image[old:])
	return image
}
