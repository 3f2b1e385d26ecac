package faultdisk

import "unsafe"

// SQLite keeps its structures in memory of its own, outside the Go heap, and names them by uintptr.
// The functions here alone make a Go value of such a number. A caller must not give them an address
// in the Go heap, which the garbage collector would not know about.

// at returns the structure at an address in SQLite's memory.
func at[T any](address uintptr) *T {
	return *(**T)(unsafe.Pointer(&address))
}

// bytesAt returns n bytes of SQLite's memory as a slice that is valid only
// during the call it came with.
func bytesAt(address uintptr, n int32) []byte {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice(at[byte](address), int(n))
}

// callable makes a function pointer of the transpiled library a Go
// function of type F.
func callable[F any](pointer uintptr) F {
	return *(*F)(unsafe.Pointer(&pointer))
}

// pointerTo makes a Go function what the transpiled library calls a
// function pointer. The caller keeps the function reachable for as long as the
// library may call it: the number alone does not.
func pointerTo[F any](function *F) uintptr {
	return *(*uintptr)(unsafe.Pointer(function))
}
