package faultdisk

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// header is the room at the start of each sqlite3_file that belongs to this
// VFS; the file of the VFS below follows. It keeps the alignment of malloc.
const header = 16

// Versions of SQLite's structures that this package fills in and relies on.
const (
	vfsVersion     = 3
	methodsVersion = 3
)

// temporary are the flags of files that do not outlive their connection.
const temporary = lib.SQLITE_OPEN_TEMP_DB | lib.SQLITE_OPEN_TRANSIENT_DB | lib.SQLITE_OPEN_TEMP_JOURNAL |
	lib.SQLITE_OPEN_SUBJOURNAL | lib.SQLITE_OPEN_DELETEONCLOSE

// sidecars are the flags of files with whose first sync through a handle that
// may make them the VFS for Unix syncs the directory as well, whether that
// handle made the file or found it.
const sidecars = lib.SQLITE_OPEN_MAIN_JOURNAL | lib.SQLITE_OPEN_SUPER_JOURNAL | lib.SQLITE_OPEN_WAL

// The shapes of the functions that SQLite calls in a VFS.
type (
	openFunc   = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	accessFunc = func(tls *libc.TLS, vfs, name uintptr, flags int32, result uintptr) int32
	sleepFunc  = func(tls *libc.TLS, vfs uintptr, microseconds int32) int32
)

// vfs is a registered VFS: the tables in SQLite's memory and the Go functions
// they point to. SQLite sees only numbers, so the functions stay reachable
// from here until the VFS is gone.
type vfs struct {
	name  string
	tls   *libc.TLS
	below uintptr // the operating system's sqlite3_vfs

	table, methods, cname uintptr // owned, in SQLite's memory

	open   openFunc
	delete deleteFunc
	access accessFunc
	sleep  sleepFunc
	calls  methods
}

// register adds a VFS for the disk to SQLite.
func register(d *Disk, name string) (*vfs, error) {
	v := &vfs{tls: libc.NewTLS(), open: d.xOpen, delete: d.xDelete, access: d.xAccess, sleep: d.xSleep, calls: methodsOf(d)}
	v.below = lib.Xsqlite3_vfs_find(v.tls, 0)
	if v.below == 0 {
		v.tls.Close()
		return nil, fmt.Errorf("SQLite has no default VFS to wrap")
	}
	if version := at[lib.Tsqlite3_vfs](v.below).FiVersion; version < vfsVersion {
		v.tls.Close()
		return nil, fmt.Errorf("default VFS has version %d, need %d", version, vfsVersion)
	}
	v.table = allocate(v.tls, unsafe.Sizeof(lib.Tsqlite3_vfs{}))
	v.methods = allocate(v.tls, unsafe.Sizeof(lib.Tsqlite3_io_methods{}))
	// The address of the table is unique for as long as the VFS exists, and so
	// is a name made of it.
	v.name = fmt.Sprintf("faultdisk-%s-%x", name, v.table)
	var err error
	if v.cname, err = libc.CString(v.name); err != nil || v.table == 0 || v.methods == 0 {
		v.free()
		return nil, fmt.Errorf("no memory for VFS %s", v.name)
	}
	v.fill()
	if code := lib.Xsqlite3_vfs_register(v.tls, v.table, 0); code != lib.SQLITE_OK {
		v.free()
		return nil, fmt.Errorf("SQLite refused VFS %s with code %d", v.name, code)
	}
	return v, nil
}

// fill writes the tables. What is not replaced (paths, randomness, dates,
// extensions, system calls) does not touch files and is taken over from below.
func (v *vfs) fill() {
	inner := at[lib.Tsqlite3_vfs](v.below)
	// Field by field: pNext of the wrapped one belongs to SQLite's list, which
	// another test may be changing.
	*at[lib.Tsqlite3_vfs](v.table) = lib.Tsqlite3_vfs{
		FiVersion:          vfsVersion,
		FszOsFile:          inner.FszOsFile + header,
		FmxPathname:        inner.FmxPathname,
		FzName:             v.cname,
		FpAppData:          inner.FpAppData,
		FxOpen:             pointerTo(&v.open),
		FxDelete:           pointerTo(&v.delete),
		FxAccess:           pointerTo(&v.access),
		FxFullPathname:     inner.FxFullPathname,
		FxDlOpen:           inner.FxDlOpen,
		FxDlError:          inner.FxDlError,
		FxDlSym:            inner.FxDlSym,
		FxDlClose:          inner.FxDlClose,
		FxRandomness:       inner.FxRandomness,
		FxSleep:            pointerTo(&v.sleep),
		FxCurrentTime:      inner.FxCurrentTime,
		FxGetLastError:     inner.FxGetLastError,
		FxCurrentTimeInt64: inner.FxCurrentTimeInt64,
		FxSetSystemCall:    inner.FxSetSystemCall,
		FxGetSystemCall:    inner.FxGetSystemCall,
		FxNextSystemCall:   inner.FxNextSystemCall,
	}
	v.calls.fill(at[lib.Tsqlite3_io_methods](v.methods))
}

// unregister takes the VFS out of SQLite's list and frees it. No file may be
// open.
func (v *vfs) unregister() error {
	code := lib.Xsqlite3_vfs_unregister(v.tls, v.table)
	v.free()
	if code != lib.SQLITE_OK {
		return fmt.Errorf("SQLite did not let go of VFS %s: code %d", v.name, code)
	}
	return nil
}

// unplug makes every later call of a connection that was left open fail, and
// leaves the tables where they are: the connection still points to them, while
// the functions of the disk may be gone once the test is over.
func (v *vfs) unplug() {
	lib.Xsqlite3_vfs_unregister(v.tls, v.table)
	v.open = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32 { return lib.SQLITE_CANTOPEN }
	v.delete = func(*libc.TLS, uintptr, uintptr, int32) int32 { return lib.SQLITE_IOERR_DELETE }
	v.access = func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32 { return lib.SQLITE_IOERR_ACCESS }
	v.sleep = func(_ *libc.TLS, _ uintptr, microseconds int32) int32 { return microseconds }
	v.calls = unplugged()
	v.fill()
}

func (v *vfs) free() {
	libc.Xfree(v.tls, v.table)
	libc.Xfree(v.tls, v.methods)
	libc.Xfree(v.tls, v.cname)
	v.tls.Close()
}

// allocate returns zeroed memory of SQLite's kind, 0 if there is none.
func allocate(tls *libc.TLS, size uintptr) uintptr {
	return libc.Xcalloc(tls, 1, types.Size_t(size))
}

func (d *Disk) xOpen(tls *libc.TLS, _, name, address uintptr, flags int32, outFlags uintptr) int32 {
	at[lib.Tsqlite3_file](address).FpMethods = 0
	d.mu.Lock()
	defer d.mu.Unlock()
	f, existed, code := d.find(name, flags)
	if code != lib.SQLITE_OK {
		return code
	}
	code = callable[openFunc](at[lib.Tsqlite3_vfs](d.vfs.below).FxOpen)(tls, d.vfs.below, name, address+header, flags, outFlags)
	inner := at[lib.Tsqlite3_file](address + header)
	if code == lib.SQLITE_OK && at[lib.Tsqlite3_io_methods](inner.FpMethods).FiVersion < methodsVersion {
		code = lib.SQLITE_CANTOPEN
	}
	if code != lib.SQLITE_OK {
		if inner.FpMethods != 0 {
			callable[plainFunc](at[lib.Tsqlite3_io_methods](inner.FpMethods).FxClose)(tls, address+header)
		}
		return code
	}
	if f.name != "" && !existed {
		f.inode = d.trace.create(f.name)
	}
	f.syncDir = flags&sidecars != 0 && flags&lib.SQLITE_OPEN_CREATE != 0
	d.files[address] = f
	at[lib.Tsqlite3_file](address).FpMethods = d.vfs.methods
	return lib.SQLITE_OK
}

// find returns the file that is about to be opened and whether it exists, or
// the code to fail with. A file outside the disk is refused: its changes would
// escape the trace. The caller holds mu.
func (d *Disk) find(name uintptr, flags int32) (*file, bool, int32) {
	if name == 0 || flags&temporary != 0 {
		return &file{}, false, lib.SQLITE_OK
	}
	relative, ok := d.relative(libc.GoString(name))
	if !ok {
		return nil, false, lib.SQLITE_CANTOPEN
	}
	if code := d.fault.answer(Open, relative); code != lib.SQLITE_OK {
		return nil, false, code
	}
	inode, existed, err := d.known(relative)
	if err != nil {
		return nil, false, lib.SQLITE_IOERR
	}
	return &file{name: relative, inode: inode}, existed, lib.SQLITE_OK
}

func (d *Disk) xDelete(tls *libc.TLS, _, name uintptr, syncDir int32) int32 {
	relative, ok := d.relative(libc.GoString(name))
	if !ok {
		return lib.SQLITE_IOERR_DELETE
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.fault.answer(Delete, relative); code != lib.SQLITE_OK {
		return code
	}
	if _, _, err := d.known(relative); err != nil {
		return lib.SQLITE_IOERR_DELETE
	}
	code := callable[deleteFunc](at[lib.Tsqlite3_vfs](d.vfs.below).FxDelete)(tls, d.vfs.below, name, 0)
	if code != lib.SQLITE_OK {
		return code
	}
	d.trace.add(Change{Kind: Deleted, File: relative, DirSync: syncDir&1 != 0})
	delete(d.trace.names, relative)
	return lib.SQLITE_OK
}

func (d *Disk) xAccess(tls *libc.TLS, _, name uintptr, flags int32, result uintptr) int32 {
	if relative, ok := d.relative(libc.GoString(name)); ok {
		d.mu.Lock()
		code := d.fault.answer(Access, relative)
		d.mu.Unlock()
		if code != lib.SQLITE_OK {
			return code
		}
	}
	return callable[accessFunc](at[lib.Tsqlite3_vfs](d.vfs.below).FxAccess)(tls, d.vfs.below, name, flags, result)
}

// xSleep does not sleep while a fault lasts: SQLite would spend seconds in
// waiting for a lock that no process will give back.
func (d *Disk) xSleep(tls *libc.TLS, _ uintptr, microseconds int32) int32 {
	d.mu.Lock()
	lasting := d.fault.lasts()
	d.mu.Unlock()
	if lasting {
		return microseconds
	}
	return callable[sleepFunc](at[lib.Tsqlite3_vfs](d.vfs.below).FxSleep)(tls, d.vfs.below, microseconds)
}
