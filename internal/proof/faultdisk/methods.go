package faultdisk

import (
	"bytes"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// The shapes of the functions that SQLite calls on an open file.
type (
	plainFunc    = func(tls *libc.TLS, file uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buffer uintptr, amount int32, offset int64) int32
	sizeFunc     = func(tls *libc.TLS, file uintptr, size int64) int32
	flagFunc     = func(tls *libc.TLS, file uintptr, flag int32) int32
	resultFunc   = func(tls *libc.TLS, file, result uintptr) int32
	controlFunc  = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	shmMapFunc   = func(tls *libc.TLS, file uintptr, region, size, extend int32, result uintptr) int32
	shmLockFunc  = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
	barrierFunc  = func(tls *libc.TLS, file uintptr)
	fetchFunc    = func(tls *libc.TLS, file uintptr, offset int64, amount int32, result uintptr) int32
	unfetchFunc  = func(tls *libc.TLS, file uintptr, offset int64, page uintptr) int32
)

// methods are the functions behind an sqlite3_io_methods.
type methods struct {
	close, sector, device   plainFunc
	read, write             transferFunc
	truncate                sizeFunc
	sync, lock, unlock, end flagFunc // end is xShmUnmap
	size, reserved          resultFunc
	control                 controlFunc
	shmMap                  shmMapFunc
	shmLock                 shmLockFunc
	barrier                 barrierFunc
	fetch                   fetchFunc
	unfetch                 unfetchFunc
}

func methodsOf(d *Disk) methods {
	return methods{
		close: d.xClose, sector: xSectorSize, device: xDeviceCharacteristics,
		read: d.xRead, write: d.xWrite, truncate: d.xTruncate,
		sync: d.xSync, lock: d.xLock, unlock: xUnlock, end: xShmUnmap,
		size: d.xFileSize, reserved: xCheckReservedLock, control: xFileControl,
		shmMap: d.xShmMap, shmLock: d.xShmLock, barrier: xShmBarrier,
		fetch: xFetch, unfetch: xUnfetch,
	}
}

// unplugged returns methods that know no disk and fail.
func unplugged() methods {
	dead := func(*libc.TLS, uintptr, int32) int32 { return lib.SQLITE_IOERR }
	nothing := func(*libc.TLS, uintptr) int32 { return 0 }
	transfer := func(*libc.TLS, uintptr, uintptr, int32, int64) int32 { return lib.SQLITE_IOERR }
	result := func(*libc.TLS, uintptr, uintptr) int32 { return lib.SQLITE_IOERR }
	return methods{
		close: nothing, sector: nothing, device: nothing, read: transfer, write: transfer,
		truncate: func(*libc.TLS, uintptr, int64) int32 { return lib.SQLITE_IOERR },
		sync:     dead, lock: dead, unlock: dead, end: dead, size: result, reserved: result,
		control: func(*libc.TLS, uintptr, int32, uintptr) int32 { return lib.SQLITE_NOTFOUND },
		shmMap:  func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32 { return lib.SQLITE_IOERR },
		shmLock: func(*libc.TLS, uintptr, int32, int32, int32) int32 { return lib.SQLITE_IOERR },
		barrier: func(*libc.TLS, uintptr) {},
		fetch:   func(*libc.TLS, uintptr, int64, int32, uintptr) int32 { return lib.SQLITE_IOERR },
		unfetch: func(*libc.TLS, uintptr, int64, uintptr) int32 { return lib.SQLITE_OK },
	}
}

// fill writes the table that SQLite reads. The methods must stay reachable.
func (m *methods) fill(table *lib.Tsqlite3_io_methods) {
	*table = lib.Tsqlite3_io_methods{
		FiVersion: methodsVersion,
		FxClose:   pointerTo(&m.close), FxRead: pointerTo(&m.read), FxWrite: pointerTo(&m.write),
		FxTruncate: pointerTo(&m.truncate), FxSync: pointerTo(&m.sync), FxFileSize: pointerTo(&m.size),
		FxLock: pointerTo(&m.lock), FxUnlock: pointerTo(&m.unlock), FxCheckReservedLock: pointerTo(&m.reserved),
		FxFileControl: pointerTo(&m.control), FxSectorSize: pointerTo(&m.sector),
		FxDeviceCharacteristics: pointerTo(&m.device),
		FxShmMap:                pointerTo(&m.shmMap), FxShmLock: pointerTo(&m.shmLock),
		FxShmBarrier: pointerTo(&m.barrier), FxShmUnmap: pointerTo(&m.end),
		FxFetch: pointerTo(&m.fetch), FxUnfetch: pointerTo(&m.unfetch),
	}
}

// below returns the file of the wrapped VFS and its methods.
func below(address uintptr) (uintptr, *lib.Tsqlite3_io_methods) {
	inner := address + header
	return inner, at[lib.Tsqlite3_io_methods](at[lib.Tsqlite3_file](inner).FpMethods)
}

func (d *Disk) xClose(tls *libc.TLS, address uintptr) int32 {
	d.mu.Lock()
	delete(d.files, address)
	d.mu.Unlock()
	inner, m := below(address)
	return callable[plainFunc](m.FxClose)(tls, inner)
}

func (d *Disk) xRead(tls *libc.TLS, address, buffer uintptr, amount int32, offset int64) int32 {
	if code := d.answer(Read, d.opened(address)); code != lib.SQLITE_OK {
		return code
	}
	inner, m := below(address)
	return callable[transferFunc](m.FxRead)(tls, inner, buffer, amount, offset)
}

func (d *Disk) xWrite(tls *libc.TLS, address, buffer uintptr, amount int32, offset int64) int32 {
	inner, m := below(address)
	write := callable[transferFunc](m.FxWrite)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[address]
	if f.inode == 0 {
		return write(tls, inner, buffer, amount, offset)
	}
	failure := d.fault.answer(Write, f.name)
	if failure != lib.SQLITE_OK {
		amount = min(int32(d.fault.fault.Short), amount-1)
		if amount <= 0 {
			return failure
		}
	}
	if d.trace.bytes+int(amount) > TraceLimit {
		d.full = true
		return lib.SQLITE_FULL
	}
	if code := write(tls, inner, buffer, amount, offset); code != lib.SQLITE_OK {
		return code
	}
	data := bytes.Clone(bytesAt(buffer, amount))
	d.trace.add(Change{Kind: Written, File: f.name, Offset: offset, Data: data, inode: f.inode})
	return failure
}

func (d *Disk) xTruncate(tls *libc.TLS, address uintptr, size int64) int32 {
	inner, m := below(address)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[address]
	if f.inode != 0 {
		if code := d.fault.answer(Truncate, f.name); code != lib.SQLITE_OK {
			return code
		}
	}
	code := callable[sizeFunc](m.FxTruncate)(tls, inner, size)
	if code == lib.SQLITE_OK && f.inode != 0 {
		d.trace.add(Change{Kind: Truncated, File: f.name, Offset: size, inode: f.inode})
	}
	return code
}

// xSync syncs nothing but the model: the bytes need not outlive the test.
func (d *Disk) xSync(_ *libc.TLS, address uintptr, _ int32) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[address]
	if f.inode == 0 {
		return lib.SQLITE_OK
	}
	change := Change{Kind: Synced, File: f.name, DirSync: f.syncDir, inode: f.inode}
	code := d.fault.answer(Sync, f.name)
	if code != lib.SQLITE_OK {
		change.Kind, change.DirSync = SyncFailed, false
	} else {
		f.syncDir = false
	}
	d.trace.add(change)
	return code
}

func (d *Disk) xFileSize(tls *libc.TLS, address, result uintptr) int32 {
	if code := d.answer(Size, d.opened(address)); code != lib.SQLITE_OK {
		return code
	}
	inner, m := below(address)
	return callable[resultFunc](m.FxFileSize)(tls, inner, result)
}

func (d *Disk) xLock(tls *libc.TLS, address uintptr, level int32) int32 {
	if code := d.answer(Lock, d.opened(address)); code != lib.SQLITE_OK {
		return code
	}
	inner, m := below(address)
	return callable[flagFunc](m.FxLock)(tls, inner, level)
}

func xUnlock(tls *libc.TLS, address uintptr, level int32) int32 {
	inner, m := below(address)
	return callable[flagFunc](m.FxUnlock)(tls, inner, level)
}

func xCheckReservedLock(tls *libc.TLS, address, result uintptr) int32 {
	inner, m := below(address)
	return callable[resultFunc](m.FxCheckReservedLock)(tls, inner, result)
}

// xFileControl keeps back the two hints upon which the VFS below would change
// the length of a file by itself.
func xFileControl(tls *libc.TLS, address uintptr, op int32, arg uintptr) int32 {
	switch op {
	case lib.SQLITE_FCNTL_SIZE_HINT:
		return lib.SQLITE_OK
	case lib.SQLITE_FCNTL_CHUNK_SIZE:
		return lib.SQLITE_NOTFOUND
	}
	inner, m := below(address)
	return callable[controlFunc](m.FxFileControl)(tls, inner, op, arg)
}

func xSectorSize(tls *libc.TLS, address uintptr) int32 {
	inner, m := below(address)
	return callable[plainFunc](m.FxSectorSize)(tls, inner)
}

// xDeviceCharacteristics promises only what the model keeps.
func xDeviceCharacteristics(tls *libc.TLS, address uintptr) int32 {
	const kept = lib.SQLITE_IOCAP_POWERSAFE_OVERWRITE | lib.SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN | lib.SQLITE_IOCAP_SUBPAGE_READ
	inner, m := below(address)
	return callable[plainFunc](m.FxDeviceCharacteristics)(tls, inner) & kept
}

func (d *Disk) xShmMap(tls *libc.TLS, address uintptr, region, size, extend int32, result uintptr) int32 {
	if code := d.answer(ShmMap, d.opened(address)); code != lib.SQLITE_OK {
		*at[uintptr](result) = 0
		return code
	}
	inner, m := below(address)
	return callable[shmMapFunc](m.FxShmMap)(tls, inner, region, size, extend, result)
}

func (d *Disk) xShmLock(tls *libc.TLS, address uintptr, offset, n, flags int32) int32 {
	if flags&lib.SQLITE_SHM_LOCK != 0 {
		if code := d.answer(ShmLock, d.opened(address)); code != lib.SQLITE_OK {
			return code
		}
	}
	inner, m := below(address)
	return callable[shmLockFunc](m.FxShmLock)(tls, inner, offset, n, flags)
}

func xShmBarrier(tls *libc.TLS, address uintptr) {
	inner, m := below(address)
	callable[barrierFunc](m.FxShmBarrier)(tls, inner)
}

func xShmUnmap(tls *libc.TLS, address uintptr, remove int32) int32 {
	inner, m := below(address)
	return callable[flagFunc](m.FxShmUnmap)(tls, inner, remove)
}

func xFetch(tls *libc.TLS, address uintptr, offset int64, amount int32, result uintptr) int32 {
	inner, m := below(address)
	return callable[fetchFunc](m.FxFetch)(tls, inner, offset, amount, result)
}

func xUnfetch(tls *libc.TLS, address uintptr, offset int64, page uintptr) int32 {
	inner, m := below(address)
	return callable[unfetchFunc](m.FxUnfetch)(tls, inner, offset, page)
}
