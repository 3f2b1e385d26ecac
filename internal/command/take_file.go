package command

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/nixie-go/nixie"
)

// TakeFile returns up to limit bytes of a regular file that a command should write, and removes the
// file; without a file it returns nil. A command could leave any type of file: TakeFile follows no
// link and does not wait for a FIFO. Errors are of [nixie.CodeInvalid].
func TakeFile(path string, limit int64) (data []byte, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() {
		if removeErr := os.RemoveAll(path); err == nil && removeErr != nil {
			data, err = nil, unreadable(removeErr)
		}
	}()
	if !info.Mode().IsRegular() {
		return nil, nixie.Errorf(nixie.CodeInvalid, "it is not a regular file: write JSON to the path that was given")
	}
	file, err := os.OpenFile(path, os.O_RDONLY|safeOpenFlags, 0)
	if err != nil {
		return nil, unreadable(err)
	}
	data, err = io.ReadAll(io.LimitReader(file, limit))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, unreadable(err)
	}
	return data, nil
}

func unreadable(err error) error {
	return nixie.Errorf(nixie.CodeInvalid, "it cannot be read: %w", err)
}
