//go:build unix

package sqlite

import "syscall"

// freeBytes returns the bytes that an ordinary user may still write in a folder.
func freeBytes(folder string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // types differ between systems
}
