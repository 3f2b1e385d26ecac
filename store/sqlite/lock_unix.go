//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the kernel lock of an open file if it is free. The lock belongs to the open file,
// is not inherited by child processes, and ends with the process.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// canLock says that tryLock can tell.
const canLock = true

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
