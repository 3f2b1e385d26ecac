package faultdisk

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	lib "modernc.org/sqlite/lib"
)

// Disk is a directory whose SQLite files are watched, and the VFS through
// which SQLite reaches them. Make one with New or NewAt. Safe for concurrent
// use.
type Disk struct {
	t    testing.TB
	dir  string
	vfs  *vfs
	root string // dir with a separator at the end

	mu    sync.Mutex // held while a change is made, so that order is truth
	trace *trace
	fault injector
	files map[uintptr]*file // open files by address of their sqlite3_file
	full  bool              // TraceLimit was reached
}

// file is an open file of the disk, or a temporary one (inode 0) that only
// passes through.
type file struct {
	name  string
	inode int

	// syncDir tells that the directory is synced with the next sync of this
	// handle.
	syncDir bool
}

// New returns an empty disk in a temporary directory, in memory where the
// machine has a file system for that. The name shows in the name of the VFS.
// The disk ends with the test, which must have closed its connections by then.
func New(t testing.TB, name string) *Disk {
	t.Helper()
	return NewAt(t, name, scratch(t))
}

// NewAt returns a disk over an existing directory, for example one that
// [Disk.CrashAt] filled. Files count as durable in the state that SQLite first
// opens them.
func NewAt(t testing.TB, name, dir string) *Disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		t.Fatalf("faultdisk: directory of disk %s: %v", name, err)
	}
	d := &Disk{
		t: t, dir: dir, root: dir + string(filepath.Separator),
		trace: newTrace(), files: map[uintptr]*file{},
	}
	if d.vfs, err = register(d, name); err != nil {
		t.Fatalf("faultdisk: disk %s: %v", name, err)
	}
	t.Cleanup(d.end)
	return d
}

// end takes the VFS away from SQLite.
func (d *Disk) end() {
	d.mu.Lock()
	open, full := len(d.files), d.full
	d.mu.Unlock()
	if full {
		d.t.Errorf("faultdisk: the trace exceeded its limit of %d bytes; make the scenario smaller", TraceLimit)
	}
	if open > 0 {
		d.t.Errorf("faultdisk: %d files of VFS %s are still open; close connections before the test ends", open, d.vfs.name)
		d.vfs.unplug()
		return
	}
	if err := d.vfs.unregister(); err != nil {
		d.t.Errorf("faultdisk: %v", err)
	}
}

// Dir returns the directory of the disk.
func (d *Disk) Dir() string { return d.dir }

// VFS returns the name under which SQLite knows the disk.
func (d *Disk) VFS() string { return d.vfs.name }

// Path returns the path of a file of the disk. The name is relative to the
// directory of the disk, or a path within it.
func (d *Disk) Path(name string) string {
	d.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	if _, ok := d.relative(name); !ok {
		d.t.Fatalf("faultdisk: %s lies outside the disk %s", name, d.dir)
	}
	return name
}

// URI returns the URI that opens a database of the disk through it. More
// parameters may be added after an "&".
func (d *Disk) URI(name string) string {
	d.t.Helper()
	u := url.URL{
		Scheme: "file", Path: filepath.ToSlash(d.Path(name)),
		RawQuery: url.Values{"vfs": {d.vfs.name}}.Encode(),
	}
	return u.String()
}

// Ops returns the number of durable changes so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.trace.changes)
}

// Trace returns the changes so far. Change n of the other methods is the
// element n-1. The bytes are shared with the disk and must not be changed.
func (d *Disk) Trace() []Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Change(nil), d.trace.changes...)
}

// Mark notes that the program under test has just promised something, for
// example that a commit returned. The label comes back from [Crash.Acked] for
// every crash after that.
func (d *Disk) Mark(label string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace.marks = append(d.trace.marks, mark{label: label, ops: len(d.trace.changes)})
}

// SyncDir notes that the program under test has synced the disk's directory by
// its own means, which the disk cannot see.
func (d *Disk) SyncDir() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace.add(Change{Kind: DirSynced, File: "."})
}

// FailAt makes the n-th matching call from now fail, counted from 1. It
// replaces an earlier fault.
func (d *Disk) FailAt(n int, fault Fault) {
	d.t.Helper()
	if n < 1 {
		d.t.Fatalf("faultdisk: FailAt(%d): calls are counted from 1", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = injector{fault: fault, left: n}
}

// Heal ends the fault. Fired keeps its answer until the next FailAt.
func (d *Disk) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault.left = 0
}

// Fired returns how many calls the latest fault has failed.
func (d *Disk) Fired() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault.fired
}

// relative returns the name by which the trace knows a path, and whether the
// path lies within the disk.
func (d *Disk) relative(path string) (string, bool) {
	name, ok := strings.CutPrefix(filepath.Clean(path), d.root)
	return filepath.ToSlash(name), ok
}

// known returns the inode of an existing file, taking it in if this is the
// first sight of it, and whether it exists. The caller holds mu.
func (d *Disk) known(name string) (int, bool, error) {
	if inode, ok := d.trace.names[name]; ok {
		return inode, true, nil
	}
	content, err := os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return d.trace.adopt(name, content), true, nil
}

// answer asks for a fault for a call.
func (d *Disk) answer(call Call, f *file) int32 {
	if f.inode == 0 {
		return lib.SQLITE_OK
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault.answer(call, f.name)
}

// opened returns the open file at an address.
func (d *Disk) opened(address uintptr) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[address]
}

// scratch returns a temporary directory that ends with the test, on a file
// system in memory where there is one: thousands of small databases are
// written and thrown away.
func scratch(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "faultdisk-") //nolint:usetesting // it lies on another file system
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("faultdisk: %v", err)
		}
	})
	return dir
}
