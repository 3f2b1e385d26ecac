package faultdisk

import "fmt"

// TraceLimit is the largest number of written bytes a disk remembers. A write
// beyond it fails with SQLITE_FULL and the test is marked as failed: a trace
// with a hole proves nothing.
const TraceLimit = 256 << 20

// Kind says what a change does.
type Kind int

// The kinds of durable change.
const (
	Created    Kind = iota // a file was made and given its name
	Written                // bytes were written
	Truncated              // the file was cut (or grown) to a size
	Synced                 // the file was synced, with its directory if DirSync
	SyncFailed             // a sync failed: nothing became durable
	Deleted                // the name was removed, the directory synced if DirSync
	DirSynced              // a directory was synced
)

// String returns the word for the kind.
func (k Kind) String() string {
	switch k {
	case Created:
		return "create"
	case Written:
		return "write"
	case Truncated:
		return "truncate"
	case Synced:
		return "sync"
	case SyncFailed:
		return "sync-failed"
	case Deleted:
		return "delete"
	case DirSynced:
		return "sync-dir"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Change is one durable change in the order in which the disk saw it.
type Change struct {
	Kind Kind

	// File is the name relative to the disk's directory, with slashes. For
	// DirSynced it is the directory, "." for the disk's own.
	File string

	// Offset counts the bytes before what was written; for Truncated it has the new size.
	Offset int64

	// Data holds the bytes that were written. It is shared and must not be changed.
	Data []byte

	// DirSync tells that the directory of the file became durable too.
	DirSync bool

	// inode distinguishes files that had the same name one after another.
	inode int
}

// String describes the change in one line.
func (c Change) String() string {
	switch c.Kind {
	case Written:
		return fmt.Sprintf("write %s at %d, %d bytes", c.File, c.Offset, len(c.Data))
	case Truncated:
		return fmt.Sprintf("truncate %s to %d", c.File, c.Offset)
	}
	if c.DirSync {
		return fmt.Sprintf("%s %s and its directory", c.Kind, c.File)
	}
	return fmt.Sprintf("%s %s", c.Kind, c.File)
}

// mark is a promise of the program under test and when it was made.
type mark struct {
	label string
	ops   int
}

// trace is everything that happened to a disk. Its owner guards it; changes
// that were handed out are never changed afterwards.
type trace struct {
	changes []Change
	marks   []mark
	bytes   int

	// before holds the files that existed when they were first opened, by
	// inode; they count as durable from the start.
	before map[int]existing

	// names maps the files that exist now to their inode numbers.
	names map[string]int
	next  int
}

// existing is a file that was there before the disk saw it.
type existing struct {
	file    string
	content []byte
}

func newTrace() *trace {
	return &trace{before: map[int]existing{}, names: map[string]int{}, next: 1}
}

// adopt takes in a file that was there before.
func (tr *trace) adopt(file string, content []byte) int {
	inode := tr.next
	tr.next++
	tr.names[file] = inode
	tr.before[inode] = existing{file: file, content: content}
	return inode
}

// create notes a new file and returns its inode.
func (tr *trace) create(file string) int {
	inode := tr.next
	tr.next++
	tr.names[file] = inode
	tr.add(Change{Kind: Created, File: file, inode: inode})
	return inode
}

func (tr *trace) add(c Change) {
	tr.bytes += len(c.Data)
	tr.changes = append(tr.changes, c)
}

// clone returns a copy that later changes do not reach. The bytes are shared.
func (tr *trace) clone() *trace {
	c := newTrace()
	c.changes = append(c.changes, tr.changes...)
	c.marks = append(c.marks, tr.marks...)
	for inode, e := range tr.before {
		c.before[inode] = e
	}
	return c
}

// acked returns the labels of the marks made when at most ops changes were
// done, oldest first.
func (tr *trace) acked(ops int) []string {
	var labels []string
	for _, m := range tr.marks {
		if m.ops <= ops {
			labels = append(labels, m.label)
		}
	}
	return labels
}
