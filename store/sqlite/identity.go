package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nixie-go/nixie"
)

// identity knows which files a store has open. If a program deletes or replaces one of them, no
// other process can find the file that this one goes on with. What it writes there is lost.
type identity struct {
	files []openFile
}

type openFile struct {
	path string
	info os.FileInfo
}

// learn stores the identity of the files that SQLite has opened for a store.
func (id *identity) learn(path string) error {
	named := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // SQLite puts the WAL next to the file that a link leads to
	}
	for i, p := range []string{named, path + "-wal", path + "-shm"} {
		info, err := os.Stat(p)
		if err == nil {
			id.files = append(id.files, openFile{p, info})
		} else if i == 0 || !errors.Is(err, fs.ErrNotExist) {
			return nixie.Errorf(nixie.CodeUnavailable, "store cannot be opened: %w", err)
		}
	}
	return nil
}

// check returns an error if one of the files was deleted or replaced. A file that cannot be
// inspected counts as present.
func (id *identity) check() error {
	for _, f := range id.files {
		now, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nixie.Errorf(nixie.CodeUnavailable, "file %s was deleted while it was in use", f.path)
		case err == nil && !os.SameFile(f.info, now):
			return nixie.Errorf(nixie.CodeUnavailable, "file %s was replaced by another while it was in use", f.path)
		}
	}
	return nil
}
