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
	ItemsFolder = "items"      // the folder of the items
	IndexFile   = "index.json" // the list next to that folder
	suffix      = ".json"
)

// MaxItem limits the bytes of a file: the largest body in its longest form, which has six bytes for
// each, with 8 MiB for the rest. Who reads one holds all of it.
const MaxItem = 6*nixie.MaxBody + 8<<20

// Dir finds the items of jobs. Each item is a JSON file in a folder called items, next to an index.
// Jobs use several paths, and some name the job twice, so Dir searches all folders below the given
// one. It follows no link out of it. It is safe for concurrent use.
type Dir struct {
	root *os.Root
	name string
}

// OpenDir opens a folder. It does not read it.
func OpenDir(name string) (*Dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	return &Dir{root, name}, nil
}

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// Path returns the path of a file or folder, for people.
func (d *Dir) Path(at string) string { return path.Join(d.name, at) }

// Folders lists the folders of items. It returns an error when there is none.
func (d *Dir) Folders() (lists []string, err error) {
	folders := []string{"."}
	for len(folders) > 0 {
		at := folders[0]
		names, err := namesIn(d.root, at)
		if err != nil {
			return nil, Unreadable(d.Path(at), err)
		}
		isList := path.Base(at) == ItemsFolder || at == "." && filepath.Base(d.name) == ItemsFolder
		if isList {
			lists = append(lists, at)
		}
		folders = folders[1:]
		for _, name := range names {
			if isList && isItem(name) {
				continue // an item is no folder, and there may be very many
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
		return nil, nixie.Errorf(nixie.CodeNotFound,
			"%s has no folder called %s with a JSON file for each item: name the folder of the job, or a file", d.name, ItemsFolder)
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

// Folder is an open folder of items. Opening its files takes one path step each.
type Folder struct {
	root *os.Root
	path string
}

// OpenFolder opens a folder of items.
func (d *Dir) OpenFolder(list string) (*Folder, error) {
	root, err := d.root.OpenRoot(filepath.FromSlash(list))
	if err != nil {
		return nil, Unreadable(d.Path(list), err)
	}
	return &Folder{root, d.Path(list)}, nil
}

// Close closes the folder.
func (l *Folder) Close() error { return l.root.Close() }

// Names lists the names of its files, in no order.
func (l *Folder) Names() ([]string, error) {
	names, err := namesIn(l.root, ".")
	if err != nil {
		return nil, Unreadable(l.path, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isItem(name) }), nil
}

// Load reads a whole file into room and returns its time of writing. It refuses other than regular
// files of UTF-8; it returns the time of those too.
func (l *Folder) Load(name string, room []byte) (raw []byte, written time.Time, err error) {
	return load(l.root, name, room[:0])
}

// Stat returns the size of a file and its time of writing, without opening it.
func (l *Folder) Stat(name string) (size int64, written time.Time, err error) {
	about, err := l.root.Stat(name)
	if err != nil {
		return 0, written, Unreadable(name, err)
	}
	return about.Size(), about.ModTime(), nil
}

// Content reads a whole file. It refuses other than regular files of JSON.
func (l *Folder) Content(name string) ([]byte, error) {
	raw, _, err := load(l.root, name, nil)
	if err != nil || json.Valid(raw) {
		return raw, err
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, new(json.RawMessage)); errors.As(err, &syntax) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s", syntaxError(raw, syntax))
	}
	return raw, nil
}

func isItem(name string) bool { return path.Ext(name) == suffix && name != IndexFile }

// Files lists the files of a folder by name.
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

// JobOf returns the job whose name the parent of a folder has; empty means none.
func (d *Dir) JobOf(list string) string {
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

// Name returns the name of an item's file without its suffix.
func Name(file string) string {
	base := path.Base(file)
	return base[:len(base)-len(suffix)]
}

// Content reads a whole file. It refuses other than regular files of JSON.
func (d *Dir) Content(file string) ([]byte, error) {
	from, err := d.OpenFolder(path.Dir(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // it was only read
	return from.Content(path.Base(file))
}

func load(root *os.Root, name string, room []byte) (raw []byte, written time.Time, err error) {
	from, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0) // opening a pipe does not block
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
			return raw, written, nixie.Errorf(nixie.CodeInvalid, "it is not valid UTF-8, which JSON must be")
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

// syntaxError names the line in which a text is not JSON.
func syntaxError(raw []byte, err *json.SyntaxError) string {
	line := 1
	for _, c := range raw[:min(int(err.Offset), len(raw))] {
		if c == '\n' {
			line++
		}
	}
	return fmt.Sprintf("line %d is not JSON: %v", line, err)
}

// Unreadable makes the error of a file that cannot be read.
func Unreadable(name string, err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be read: %w", name, err)
}
