package itemfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// The names in the folders of a MapReduce job.
const (
	Items  = "items"      // the folder of its items
	Index  = "index.json" // the list beside that one
	suffix = ".json"
)

// MaxItem is how many bytes a file may have: the largest body in its longest form, and a
// story with it.
const MaxItem = 128 << 20

// Dir finds the items of jobs: a JSON file each, in folders called items beside an index.
// Jobs lie under several paths, some of which name the job twice, so any folder below the
// given one counts. Links are not followed out of it. It is safe for concurrent use.
type Dir struct {
	root *os.Root
	name string
}

// OpenDir opens a folder; it holds no item yet for all it knows.
func OpenDir(name string) (*Dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	return &Dir{root, name}, nil
}

// Close gives the folder back.
func (d *Dir) Close() error { return d.root.Close() }

// Path is a file or folder of it for people.
func (d *Dir) Path(at string) string { return path.Join(d.name, at) }

// Lists are the folders of items. None is an error.
func (d *Dir) Lists() (lists []string, err error) {
	folders := []string{"."}
	for len(folders) > 0 {
		at := folders[0]
		names, err := namesIn(d.root, at)
		if err != nil {
			return nil, Unreadable(d.Path(at), err)
		}
		isList := path.Base(at) == Items || at == "." && filepath.Base(d.name) == Items
		if isList {
			lists = append(lists, at)
		}
		folders = folders[1:]
		for _, name := range names {
			if isList && isItem(name) {
				continue // there may be very many, and none is a folder
			}
			below := path.Join(at, name)
			if about, err := d.root.Lstat(filepath.FromSlash(below)); err != nil {
				return nil, Unreadable(d.Path(below), err)
			} else if about.IsDir() {
				folders = append(folders, below)
			}
		}
	}
	if len(lists) == 0 {
		return nil, nixie.Errorf(nixie.CodeNotFound, "%s has no folder called %s with a JSON file for each item: name the folder of the job, or a file", d.name, Items)
	}
	slices.Sort(lists)
	return lists, nil
}

func namesIn(root *os.Root, folder string) ([]string, error) {
	from, err := root.Open(filepath.FromSlash(folder))
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // it was only read
	return from.Readdirnames(-1)
}

// List is a folder of items that is read as a whole: each file is one step away.
type List struct {
	root *os.Root
	path string
}

// Enter opens a list.
func (d *Dir) Enter(list string) (*List, error) {
	root, err := d.root.OpenRoot(filepath.FromSlash(list))
	if err != nil {
		return nil, Unreadable(d.Path(list), err)
	}
	return &List{root, d.Path(list)}, nil
}

// Close gives the list back.
func (l *List) Close() error { return l.root.Close() }

// Names are those of its files, in no order.
func (l *List) Names() ([]string, error) {
	names, err := namesIn(l.root, ".")
	if err != nil {
		return nil, Unreadable(l.path, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isItem(name) }), nil
}

// Load reads a file whole into room, if it is a regular one that holds UTF-8, and says
// when it was written, which it knows of others as well.
func (l *List) Load(name string, room []byte) (raw []byte, written time.Time, err error) {
	return load(l.root, name, room[:0])
}

func isItem(name string) bool { return path.Ext(name) == suffix && name != Index }

// Files are the items of a list, by name.
func (d *Dir) Files(list string) ([]string, error) {
	names, err := namesIn(d.root, list)
	if err != nil {
		return nil, Unreadable(d.Path(list), err)
	}
	files := slices.DeleteFunc(names, func(name string) bool { return !isItem(name) })
	slices.Sort(files)
	for i, name := range files {
		files[i] = path.Join(list, name)
	}
	return files, nil
}

// Job is the job that the folder around a list has the name of; empty is none.
func (d *Dir) Job(list string) string {
	if list == "." {
		return ""
	}
	if parent := path.Dir(list); parent != "." {
		return path.Base(parent)
	}
	whole, err := filepath.Abs(d.name)
	if err != nil {
		return ""
	}
	return filepath.Base(whole)
}

// Name is the name of an item's file without the end that all of them have.
func Name(file string) string {
	base := path.Base(file)
	return base[:len(base)-len(suffix)]
}

// Content reads a file whole, if it is a regular one that holds JSON.
func (d *Dir) Content(file string) ([]byte, error) {
	raw, _, err := load(d.root, filepath.FromSlash(file), nil)
	if err != nil {
		return nil, err
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, new(json.RawMessage)); errors.As(err, &syntax) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s", placed(raw, syntax))
	}
	return raw, nil
}

func load(root *os.Root, name string, room []byte) (raw []byte, written time.Time, err error) {
	from, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0) // a pipe lets nobody wait
	if err != nil {
		return room, written, Unreadable(name, err)
	}
	defer func() { _ = from.Close() }() // it was only read
	about, err := from.Stat()
	if err != nil {
		return room, written, Unreadable(name, err)
	}
	written = about.ModTime()
	switch {
	case !about.Mode().IsRegular():
		return room, written, nixie.Errorf(nixie.CodeInvalid, "it is not a regular file")
	case about.Size() > MaxItem:
		return room, written, tooLarge()
	}
	raw = slices.Grow(room, int(about.Size())+1)
	for len(raw) <= MaxItem {
		raw = slices.Grow(raw, 1)
		n, err := from.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case err == io.EOF && !utf8.Valid(raw):
			return raw, written, nixie.Errorf(nixie.CodeInvalid, "it is not valid UTF-8, which JSON has to be")
		case err == io.EOF:
			return raw, written, nil
		case err != nil:
			return raw, written, Unreadable(name, err)
		}
	}
	return raw, written, tooLarge()
}

func tooLarge() error {
	return nixie.Errorf(nixie.CodeLimit, "it has more than %d bytes, the limit", MaxItem)
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

// Unreadable says that a file cannot be read.
func Unreadable(name string, err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be read: %w", name, err)
}
