package letterfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// folder reads the items of jobs and compares them with the index of each folder.
type folder struct {
	dir     *itemfile.Dir
	folders []string // of items, still unread

	folder  string // the present one
	job     string
	files   []string        // of the present folder, still unread
	missing map[string]bool // IDs of the index that no file has had so far
	pending []rawRecord     // records to return before the next folder
}

func openFolder(name string) (*folder, error) {
	dir, err := itemfile.OpenDir(name)
	if err != nil {
		return nil, err
	}
	lists, err := dir.Folders()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &folder{dir: dir, folders: lists}, nil
}

func (f *folder) Close() error { return f.dir.Close() }

func (f *folder) next() (rawRecord, error) {
	for {
		switch {
		case len(f.files) > 0:
			name := f.files[0]
			f.files = f.files[1:]
			return f.read(name), nil
		case len(f.pending) > 0:
			t := f.pending[0]
			f.pending = f.pending[1:]
			return t, nil
		case len(f.missing) > 0:
			for _, id := range slices.Sorted(maps.Keys(f.missing)) {
				f.pending = append(f.pending,
					f.bad(itemfile.IndexFile,
						nixie.Errorf(nixie.CodeNotFound,
							"it lists item %q, and no file in %s has it: restore the file, or remove the ID from the list", id,
							itemfile.ItemsFolder)))
			}
			f.missing = nil
		case len(f.folders) == 0:
			return rawRecord{}, io.EOF
		default:
			f.folder, f.folders = f.folders[0], f.folders[1:]
			if err := f.enter(); err != nil {
				return rawRecord{}, err
			}
		}
	}
}

// enter reads the names in a folder of items, and its index.
func (f *folder) enter() (err error) {
	if f.files, err = f.dir.Files(f.folder); err != nil {
		return err
	}
	if f.job = f.dir.JobOf(f.folder); f.folder == "." {
		return nil // its index lies outside the given folder
	}
	return f.readIndex(path.Join(path.Dir(f.folder), itemfile.IndexFile))
}

func (f *folder) readIndex(name string) error {
	raw, err := f.dir.Content(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var index struct {
		Job string   `json:"job_id"`
		IDs []string `json:"item_ids"`
	}
	if err == nil {
		err = itemfile.Decode(raw, &index, false)
	}
	if err != nil {
		f.pending = append(f.pending, f.bad(itemfile.IndexFile, err))
		return nil
	}
	if index.Job != "" {
		f.job = index.Job
	}
	f.missing = make(map[string]bool, len(index.IDs))
	for _, id := range index.IDs {
		f.missing[id] = true
	}
	return nil
}

// read reads the file of one item. An unreadable file becomes a bad record, so that none is dropped
// in silence.
func (f *folder) read(name string) rawRecord {
	raw, err := f.dir.Content(name)
	var has struct {
		ID string `json:"item_id"`
	}
	if err == nil {
		err = itemfile.Decode(raw, &has, false)
	}
	if err != nil {
		delete(f.missing, itemfile.Name(name)) // one error for the item is enough
		return rawRecord{bad: fmt.Errorf("%s: %w", f.dir.Path(name), err)}
	}
	delete(f.missing, has.ID)
	return rawRecord{raw: raw, position: f.dir.Path(name), job: f.job}
}

func (f *folder) bad(name string, err error) rawRecord {
	return rawRecord{bad: fmt.Errorf("%s: %w", f.dir.Path(path.Join(path.Dir(f.folder), name)), err)}
}
