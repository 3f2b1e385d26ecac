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

// folder reads the items of jobs, and compares them with the index beside them.
type folder struct {
	dir   *itemfile.Dir
	lists []string // folders of items, yet to be read

	list    string // the folder that is being read
	job     string
	files   []string        // of list, yet to be read
	missing map[string]bool // IDs of the index that no file had so far
	late    []text          // records to return before the next list
}

func openFolder(name string) (*folder, error) {
	dir, err := itemfile.OpenDir(name)
	if err != nil {
		return nil, err
	}
	lists, err := dir.Lists()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &folder{dir: dir, lists: lists}, nil
}

func (f *folder) Close() error { return f.dir.Close() }

func (f *folder) next() (text, error) {
	for {
		switch {
		case len(f.files) > 0:
			name := f.files[0]
			f.files = f.files[1:]
			return f.read(name), nil
		case len(f.late) > 0:
			t := f.late[0]
			f.late = f.late[1:]
			return t, nil
		case len(f.missing) > 0:
			for _, id := range slices.Sorted(maps.Keys(f.missing)) {
				f.late = append(f.late, f.bad(itemfile.Index, nixie.Errorf(nixie.CodeNotFound, "it lists item %q, and no file in %s has it: look for the file, or take the ID out of the list", id, itemfile.Items)))
			}
			f.missing = nil
		case len(f.lists) == 0:
			return text{}, io.EOF
		default:
			f.list, f.lists = f.lists[0], f.lists[1:]
			if err := f.enter(); err != nil {
				return text{}, err
			}
		}
	}
}

// enter reads the names in a folder of items, and the index beside it.
func (f *folder) enter() (err error) {
	if f.files, err = f.dir.Files(f.list); err != nil {
		return err
	}
	if f.job = f.dir.Job(f.list); f.list == "." {
		return nil // what is beside it is not ours to read
	}
	return f.readIndex(path.Join(path.Dir(f.list), itemfile.Index))
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
		f.late = append(f.late, f.bad(itemfile.Index, err))
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

// read reads a file of one item. One that cannot be read is a record that is
// bad: the list must not get shorter in silence.
func (f *folder) read(name string) text {
	raw, err := f.dir.Content(name)
	var has struct {
		ID string `json:"item_id"`
	}
	if err == nil {
		err = itemfile.Decode(raw, &has, false)
	}
	if err != nil {
		delete(f.missing, itemfile.Name(name)) // named once is enough
		return text{bad: fmt.Errorf("%s: %w", f.dir.Path(name), err)}
	}
	delete(f.missing, has.ID)
	return text{raw: raw, place: f.dir.Path(name), job: f.job}
}

func (f *folder) bad(name string, err error) text {
	return text{bad: fmt.Errorf("%s: %w", f.dir.Path(path.Join(path.Dir(f.list), name)), err)}
}
