package config

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/nixie-go/nixie"
)

// Unreadable says why a file cannot be read, and what to do. What says who named it, such as a
// flag; it may be empty.
func Unreadable(what, path string, err error) error {
	why := "cannot be read: "
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why, err = "does not exist: check its path", nil
	case errors.Is(err, syscall.EISDIR):
		why, err = "is a folder: name a file", nil
	case errors.Is(err, syscall.ENOTDIR):
		why, err = "does not exist: a folder of its path is a file", nil
	case errors.Is(err, fs.ErrPermission):
		why, err = "cannot be read by this user: change its rights, or name another file", nil
	case errors.As(err, &at):
		err = at.Err
	}
	if what != "" {
		what += " "
	}
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "%s%s %s%w", what, path, why, err)
	}
	return nixie.Errorf(nixie.CodeInvalid, "%s%s %s", what, path, why)
}
