package itemfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Writer writes items into the folders of their jobs, JOB/mapreduce/dlq/JOB/items below
// the given one, and an index beside each. A file is there whole or not at all. It is not
// safe for concurrent use.
type Writer struct {
	root *os.Root
	name string
	now  func() time.Time
	jobs map[string]*written
}

// written is what was written of a job.
type written struct {
	name  string
	at    string            // its folder
	names map[string]string // file names in lower case, as some systems compare them, and whose they are
}

// NewWriter opens a folder, which is made if need be.
func NewWriter(folder string, now func() time.Time) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, unwritable(folder, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, unwritable(folder, err)
	}
	return &Writer{root, folder, now, map[string]*written{}}, nil
}

// Write writes the item of a letter. An item that lies there under its ID is replaced, and
// a second letter with the ID of one that was written gets a name of its own.
func (w *Writer) Write(l *nixie.Letter, item Item) error {
	of, err := w.job(Job(l.Message.Queue))
	if err != nil {
		return err
	}
	text, err := item.MarshalJSON()
	if err != nil {
		return err
	}
	return w.put(path.Join(of.at, Items, of.fileOf(idOf(l), l.ID)), text)
}

// job makes the folder of a job, and looks which names are taken there.
func (w *Writer) job(job string) (*written, error) {
	if of := w.jobs[job]; of != nil {
		return of, nil
	}
	safe := FileName(job)
	of := &written{name: job, at: path.Join(safe, "mapreduce", "dlq", safe), names: map[string]string{}}
	items := path.Join(of.at, Items)
	if err := w.root.MkdirAll(filepath.FromSlash(items), 0o700); err != nil {
		return nil, unwritable(path.Join(w.name, items), err)
	}
	all, err := w.ids(items)
	if err != nil {
		return nil, err
	}
	for name, id := range all {
		of.names[strings.ToLower(name)] = before + id
	}
	w.jobs[job] = of
	return of, nil
}

// fileOf is the name of the file of an item.
func (of *written) fileOf(id string, letter nixie.ID) string {
	name := FileName(id) + suffix
	owner, taken := of.names[strings.ToLower(name)]
	if strings.EqualFold(name, Index) || taken && owner != before+id { // readers take Index for the list
		name = FileName(id) + "-" + letter.String() + suffix
	}
	of.names[strings.ToLower(name)] = letter.String()
	return name
}

// before is in front of the ID of an item that was there before.
const before = "before "

// ids are the IDs of the items in a folder by the names of their files; empty for what
// cannot be read.
func (w *Writer) ids(items string) (map[string]string, error) {
	names, err := namesIn(w.root, items)
	if err != nil {
		return nil, unwritable(path.Join(w.name, items), err)
	}
	all := map[string]string{}
	for _, name := range names {
		if !isItem(name) {
			continue
		}
		var has struct {
			ID string `json:"item_id"`
		}
		raw, _, err := load(w.root, filepath.Join(filepath.FromSlash(items), name), nil)
		if err == nil {
			_ = json.Unmarshal(raw, &has) // what cannot be read has no ID
		}
		all[name] = has.ID
	}
	return all, nil
}

// Close writes the indexes, from what lies in the folders of the items.
func (w *Writer) Close() error {
	var errs []error
	for _, of := range w.jobs {
		errs = append(errs, w.index(of))
	}
	return errors.Join(append(errs, w.root.Close())...)
}

// index lists the items of a job. What else an index says that is there stays.
func (w *Writer) index(of *written) error {
	all, err := w.ids(path.Join(of.at, Items))
	if err != nil {
		return err
	}
	ids := []string{}
	for _, id := range all {
		if id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	at := path.Join(of.at, Index)
	says := object{}
	if raw, _, err := load(w.root, filepath.FromSlash(at), nil); err == nil {
		if json.Unmarshal(raw, &says) != nil || says == nil {
			says = object{} // damaged: it is made anew
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path.Join(w.name, at), err)
	}
	ours, err := objectOf([]field{{"job_id", of.name}, {"item_count", len(ids)}, {"item_ids", ids}, {"updated_at", moment(w.now())}})
	if err != nil {
		return err
	}
	for name, value := range ours {
		says[name] = value
	}
	text, err := says.write([]string{"job_id", "item_count", "item_ids", "updated_at"})
	if err != nil {
		return err
	}
	return errors.Join(w.put(at, text), w.sync(path.Join(of.at, Items)), w.sync(of.at))
}

// sync lets the names in a folder outlast a loss of power.
func (w *Writer) sync(folder string) error {
	from, err := w.root.Open(filepath.FromSlash(folder))
	if err == nil {
		err = errors.Join(syncFolder(from), from.Close())
	}
	if err != nil {
		return unwritable(path.Join(w.name, folder), err)
	}
	return nil
}

// put writes a file whole: under another name first, and under its own once it is on disk.
func (w *Writer) put(at string, text []byte) (err error) {
	name := filepath.FromSlash(at)
	beside := filepath.Join(filepath.Dir(name), ".nixie-new")
	defer func() {
		if err != nil {
			err = unwritable(path.Join(w.name, at), errors.Join(err, removed(w.root, beside)))
		}
	}()
	file, err := w.root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return w.root.Rename(beside, name)
}

func removed(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func unwritable(name string, err error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be written: %w", name, err)
}

// maxFileName is how many bytes such a name may have.
const maxFileName = 200

// FileName is a name for what belongs to an item, or to a job: the ID, with %XX for what
// may not be in the name of a file or could lead elsewhere, and a hash at the end of what is
// too long. No two IDs have the same, where systems tell capitals apart.
func FileName(id string) string {
	var b strings.Builder
	for i, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_@=+, ", c) >= 0, c == '.' && i > 0, c >= utf8.RuneSelf:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if len(name) <= maxFileName {
		return name
	}
	hash := nixie.HashBody([]byte(id))
	return fmt.Sprintf("%s-%x", strings.ToValidUTF8(name[:maxFileName-33], ""), hash[:16])
}
