package letterfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// The names in the folders of a MapReduce job.
const (
	itemsFolder = "items"
	indexFile   = "index.json"
	itemSuffix  = ".json"
)

// folder finds the items of jobs: a JSON file each, in folders called items
// beside an index. Jobs lie under several paths, some of which name the job
// twice, so any folder below the given one counts. Links are not followed out
// of it.
type folder struct {
	root  *os.Root
	name  string
	lists []string // folders of items, yet to be read

	list    string // the folder that is being read
	job     string
	files   []string        // of list, yet to be read
	missing map[string]bool // IDs of the index that no file had so far
	late    []text          // records to return before the next list
}

func openFolder(name string) (*folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	f := &folder{root: root, name: name}
	err = fs.WalkDir(root.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(path.Join(name, at), err)
		}
		if entry.IsDir() && (path.Base(at) == itemsFolder || at == "." && filepath.Base(name) == itemsFolder) {
			f.lists = append(f.lists, at)
		}
		return nil
	})
	if err == nil && len(f.lists) == 0 {
		err = nixie.Errorf(nixie.CodeNotFound, "%s has no folder called %s with a JSON file for each item: name the folder of the job, or a file", name, itemsFolder)
	}
	if err != nil {
		_ = root.Close() // it was only read
		return nil, err
	}
	return f, nil
}

func (f *folder) Close() error { return f.root.Close() }

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
				f.late = append(f.late, f.bad(indexFile, nixie.Errorf(nixie.CodeNotFound, "it lists item %q, and no file in %s has it: look for the file, or take the ID out of the list", id, itemsFolder)))
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
func (f *folder) enter() error {
	entries, err := fs.ReadDir(f.root.FS(), f.list)
	if err != nil {
		return unreadable(path.Join(f.name, f.list), err)
	}
	for _, e := range entries {
		if path.Ext(e.Name()) == itemSuffix && e.Name() != indexFile {
			f.files = append(f.files, path.Join(f.list, e.Name()))
		}
	}
	f.job = ""
	if f.list == "." {
		return nil // what is beside it is not ours to read
	}
	if parent := path.Dir(f.list); parent != "." {
		f.job = path.Base(parent)
	} else if whole, err := filepath.Abs(f.name); err == nil {
		f.job = filepath.Base(whole)
	}
	return f.readIndex(path.Join(path.Dir(f.list), indexFile))
}

func (f *folder) readIndex(name string) error {
	raw, err := f.content(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var index struct {
		Job string   `json:"job_id"`
		IDs []string `json:"item_ids"`
	}
	if err == nil {
		err = decode(raw, &index, false)
	}
	if err != nil {
		f.late = append(f.late, f.bad(indexFile, err))
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
	raw, err := f.content(name)
	var has struct {
		ID string `json:"item_id"`
	}
	if err == nil {
		err = decode(raw, &has, false)
	}
	if err != nil {
		base := path.Base(name)
		delete(f.missing, base[:len(base)-len(itemSuffix)]) // named once is enough
		return text{bad: fmt.Errorf("%s: %w", path.Join(f.name, name), err)}
	}
	delete(f.missing, has.ID)
	return text{raw: raw, place: path.Join(f.name, name), job: f.job}
}

func (f *folder) bad(name string, err error) text {
	return text{bad: fmt.Errorf("%s: %w", path.Join(f.name, path.Dir(f.list), name), err)}
}

// content reads a file whole, and only if it is one.
func (f *folder) content(name string) (raw []byte, err error) {
	about, err := f.root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nil, unreadable(name, err)
	case !about.Mode().IsRegular():
		return nil, nixie.Errorf(nixie.CodeInvalid, "it is not a regular file")
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err = io.ReadAll(io.LimitReader(file, MaxRecord+1))
	switch {
	case err != nil:
		return nil, unreadable(name, err)
	case len(raw) > MaxRecord:
		return nil, nixie.Errorf(nixie.CodeLimit, "it has more than %d bytes, the limit", MaxRecord)
	case !utf8.Valid(raw):
		return nil, nixie.Errorf(nixie.CodeInvalid, "it is not valid UTF-8, which JSON has to be")
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, new(json.RawMessage)); errors.As(err, &syntax) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s", placed(raw, syntax))
	}
	return raw, nil
}

// placed says in which line a text is not JSON.
func placed(raw []byte, err *json.SyntaxError) string {
	line := 1
	for _, c := range raw[:min(int(err.Offset), len(raw))] {
		if c == '\n' {
			line++
		}
	}
	return fmt.Sprintf("line %d is not JSON: %v", line, err)
}

func unreadable(name string, err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be read: %w", name, err)
}
