package itemfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Writer writes items into the folders of their jobs, where one has its items already, or
// else in JOB/mapreduce/dlq/JOB/items below the given one, and an index beside each. A file
// is there whole or not at all. It is not safe for concurrent use.
type Writer struct {
	root  *os.Root
	name  string
	now   func() time.Time
	lists map[string][]string // that are there, by job
	jobs  map[string]*written
}

// written is what is known of a job.
type written struct {
	name  string
	list  string              // where new items go
	names map[string]bool     // of the files there, in lower case, as some systems compare them
	files map[string]string   // items by their IDs, also those of its other lists
	wrote map[string]nixie.ID // the letter of each file that was written
	stale map[string]bool     // lists whose index has to be written
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
	w := &Writer{root, folder, now, map[string][]string{}, map[string]*written{}}
	d := Dir{root, folder}
	lists, err := d.Lists()
	if err != nil && nixie.CodeOf(err) != nixie.CodeNotFound {
		return nil, errors.Join(err, root.Close())
	}
	for _, list := range lists {
		job := d.Job(list)
		w.lists[job] = append(w.lists[job], list)
	}
	return w, nil
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
	id := ID(l)
	at, there := of.files[id]
	if other := of.wrote[at]; !there || other != l.ID && !other.IsZero() {
		at = path.Join(of.list, of.fileOf(id, l.ID))
	}
	of.files[id], of.wrote[at], of.stale[path.Dir(at)] = at, l.ID, true
	if is, _, err := load(w.root, filepath.FromSlash(at), nil); err == nil && bytes.Equal(is, append(text, '\n')) {
		return nil // it says so already
	}
	return w.put(at, text)
}

// job makes the folder of a job, and looks what is there.
func (w *Writer) job(job string) (*written, error) {
	if of := w.jobs[job]; of != nil {
		return of, nil
	}
	safe := FileName(job)
	lists := w.lists[safe]
	if len(lists) == 0 {
		lists = []string{path.Join(safe, "mapreduce", "dlq", safe, Items)}
		if err := w.root.MkdirAll(filepath.FromSlash(lists[0]), 0o700); err != nil {
			return nil, unwritable(path.Join(w.name, lists[0]), err)
		}
	}
	of := &written{
		name: job, list: lists[0], names: map[string]bool{}, files: map[string]string{}, wrote: map[string]nixie.ID{},
		stale: map[string]bool{lists[0]: true},
	}
	for _, list := range lists {
		all, err := w.ids(list)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			id := all[name]
			if _, known := of.files[id]; id != "" && (!known || name == FileName(id)+suffix) {
				of.files[id] = path.Join(list, name)
			}
			of.names[strings.ToLower(name)] = of.names[strings.ToLower(name)] || list == of.list
		}
	}
	w.jobs[job] = of
	return of, nil
}

// Has reports whether an item has its file.
func (w *Writer) Has(job, id string) (bool, error) {
	of, err := w.job(job)
	if err != nil {
		return false, err
	}
	_, there := of.files[id]
	return there, nil
}

// Remove removes the file of an item, and keeps who did it and why in [AuditFile] beside
// its index. It reports whether there was one.
func (w *Writer) Remove(job, id string, by Removal) (bool, error) {
	of, err := w.job(job)
	if err != nil {
		return false, err
	}
	at, there := of.files[id]
	if !there {
		return false, nil
	}
	by.At, by.Item = w.now().UTC(), id
	line, err := Marshal(by)
	if err != nil {
		return false, err
	}
	if err := w.append(path.Join(path.Dir(path.Dir(at)), AuditFile), line); err != nil {
		return false, err
	}
	if err := removed(w.root, filepath.FromSlash(at)); err != nil {
		return false, unwritable(path.Join(w.name, at), err)
	}
	delete(of.files, id)
	of.stale[path.Dir(at)] = true
	return true, nil
}

// AuditFile says which items were removed from a folder, a JSON object in a line each.
const AuditFile = "audit.jsonl"

// Removal is a line of it.
type Removal struct {
	At     time.Time `json:"at"`
	Item   string    `json:"item_id"`
	Action string    `json:"action"` // what became of it: resolved, discarded or purged
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

// append adds a line to a file, on disk before it returns.
func (w *Writer) append(at string, line []byte) error {
	file, err := w.root.OpenFile(filepath.FromSlash(at), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.Write(append(line, '\n'))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return unwritable(path.Join(w.name, at), err)
	}
	return nil
}

// fileOf is the name of the file of an item.
func (of *written) fileOf(id string, letter nixie.ID) string {
	name := FileName(id) + suffix
	if strings.EqualFold(name, Index) || of.names[strings.ToLower(name)] { // readers take Index for the list
		name = FileName(id) + "-" + letter.String() + suffix
	}
	of.names[strings.ToLower(name)] = true
	return name
}

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

// Close writes the indexes of what was changed, from what lies in the folders of the items.
func (w *Writer) Close() error {
	var errs []error
	for _, of := range w.jobs {
		for list := range of.stale {
			errs = append(errs, w.index(of.name, list))
		}
	}
	return errors.Join(append(errs, w.root.Close())...)
}

// index lists the items of a job. What else an index says that is there stays.
func (w *Writer) index(job, list string) error {
	all, err := w.ids(list)
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
	at := path.Join(path.Dir(list), Index)
	says := object{}
	if raw, _, err := load(w.root, filepath.FromSlash(at), nil); err == nil {
		if json.Unmarshal(raw, &says) != nil || says == nil {
			says = object{} // damaged: it is made anew
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path.Join(w.name, at), err)
	}
	ours, err := objectOf([]field{{"job_id", job}, {"item_count", len(ids)}, {"item_ids", ids}, {"updated_at", moment(w.now())}})
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
	return errors.Join(w.put(at, text), w.sync(list), w.sync(path.Dir(list)))
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
