package command

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// FullError reports that the disk of a folder is full. It says nothing about the item: a runner
// waits for room and repeats the attempt.
type FullError struct{ Folder string }

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of %s is full: free some space", e.Folder)
}

// needed is the room in bytes below which a disk counts as full: enough for a small commit.
const needed = 1 << 20

// Room returns a [*FullError] for the first of the folders whose disk is full, and nil if there is
// none. It writes a file of 1 MiB to each and removes it, as nothing else knows about quotas.
// Other errors are none of its business.
func Room(folders ...string) error {
	for _, folder := range folders {
		if IsFull(fill(folder)) {
			return &FullError{folder}
		}
	}
	return nil
}

// IsFull reports whether an error is one of a full disk or a quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func fill(folder string) error {
	file, err := os.CreateTemp(folder, ".nixie-room-*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, needed))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
