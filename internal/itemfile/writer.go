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

// Writer writes items into the folders of their jobs, with an index next to each. A job without a
// folder gets JOB/mapreduce/dlq/JOB/items. A file exists whole or not at all. It is not safe for
// concurrent use.
type Writer struct {
	root    *os.Root
	name    string
	now     func() time.Time
	folders map[string][]string // that exist, by job
	jobs    map[string]*jobFiles
}

// jobFiles holds the folder and the files of a job.
type jobFiles struct {
	name    string
	folder  string              // of new items
	names   map[string]bool     // of its files, in lower case, as some systems compare them
	files   map[string]string   // by item ID, also in its other folders
	letters map[string]nixie.ID // by file that was written: its letter
	dirty   map[string]bool     // folders whose index must be written
}

// NewWriter opens a folder, and makes it if need be.
func NewWriter(folder string, now func() time.Time) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, unwritable(folder, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, unwritable(folder, err)
	}
	w := &Writer{root, folder, now, map[string][]string{}, map[string]*jobFiles{}}
	d := Dir{root, folder}
	lists, err := d.Folders()
	if err != nil && nixie.CodeOf(err) != nixie.CodeNotFound {
		return nil, errors.Join(err, root.Close())
	}
	for _, list := range lists {
		job := d.JobOf(list)
		w.folders[job] = append(w.folders[job], list)
	}
	return w, nil
}

// Write writes the item of a letter. It replaces an item with the same ID. A second letter with the
// ID of a written one gets a file of its own.
func (w *Writer) Write(l *nixie.Letter, item Item) error {
	of, err := w.job(JobOf(l.Message.Queue))
	if err != nil {
		return err
	}
	text, err := item.MarshalJSON()
	if err != nil {
		return err
	}
	id := ItemID(l)
	at, there := of.files[id]
	if other := of.letters[at]; !there || other != l.ID && !other.IsZero() {
		at = path.Join(of.folder, of.newFileName(id, l.ID))
	}
	of.files[id], of.letters[at], of.dirty[path.Dir(at)] = at, l.ID, true
	if is, _, err := load(w.root, filepath.FromSlash(at), nil); err == nil && bytes.Equal(is, append(text, '\n')) {
		return nil // the file has the same content
	}
	return w.writeFile(at, text)
}

// job makes the folder of a job, and reads the files in it.
func (w *Writer) job(job string) (*jobFiles, error) {
	if of := w.jobs[job]; of != nil {
		return of, nil
	}
	safe := FileName(job)
	lists := w.folders[safe]
	if len(lists) == 0 {
		lists = []string{path.Join(safe, "mapreduce", "dlq", safe, ItemsFolder)}
		if err := w.root.MkdirAll(filepath.FromSlash(lists[0]), 0o700); err != nil {
			return nil, unwritable(path.Join(w.name, lists[0]), err)
		}
	}
	of := &jobFiles{
		name: job, folder: lists[0], names: map[string]bool{}, files: map[string]string{}, letters: map[string]nixie.ID{},
		dirty: map[string]bool{lists[0]: true},
	}
	for _, list := range lists {
		all, err := w.idsIn(list)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			id := all[name]
			if _, known := of.files[id]; id != "" && (!known || name == FileName(id)+suffix) {
				of.files[id] = path.Join(list, name)
			}
			of.names[strings.ToLower(name)] = of.names[strings.ToLower(name)] || list == of.folder
		}
	}
	w.jobs[job] = of
	return of, nil
}

// Remove removes the file of an item and adds a line to the [AuditFile] next to its index. It
// reports whether there was a file: another process may have removed it.
func (w *Writer) Remove(job, id string, by Removal) (bool, error) {
	of, err := w.job(job)
	if err != nil {
		return false, err
	}
	at, there := of.files[id]
	if there {
		_, err = w.root.Lstat(filepath.FromSlash(at))
		there = !errors.Is(err, fs.ErrNotExist)
	}
	if !there {
		return false, nil
	}
	by.At, by.Item = w.now().UTC(), id
	line, err := Marshal(by)
	if err != nil {
		return false, err
	}
	if err := w.appendLine(path.Join(path.Dir(path.Dir(at)), AuditFile), line); err != nil {
		return false, err
	}
	if err := removeIfExists(w.root, filepath.FromSlash(at)); err != nil {
		return false, unwritable(path.Join(w.name, at), err)
	}
	delete(of.files, id)
	of.dirty[path.Dir(at)] = true
	return true, nil
}

// AuditFile lists the items that were removed from a folder: a line of JSON for each.
const AuditFile = "audit.jsonl"

// Removal is a line of an [AuditFile].
type Removal struct {
	At     time.Time `json:"at"`
	Item   string    `json:"item_id"`
	Action string    `json:"action"` // what became of the item: resolved, redriven, discarded or purged
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

// appendLine adds a line to a file and syncs it.
func (w *Writer) appendLine(at string, line []byte) error {
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

// newFileName makes the file name of a new item.
func (of *jobFiles) newFileName(id string, letter nixie.ID) string {
	name := FileName(id) + suffix
	if strings.EqualFold(name, IndexFile) || of.names[strings.ToLower(name)] { // the index has that name
		name = FileName(id) + "-" + letter.String() + suffix
	}
	of.names[strings.ToLower(name)] = true
	return name
}

// idsIn returns the item IDs in a folder by file name; an unreadable file has an empty one.
func (w *Writer) idsIn(items string) (map[string]string, error) {
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
			_ = json.Unmarshal(raw, &has) // an unreadable item has no ID
		}
		all[name] = has.ID
	}
	return all, nil
}

// Close writes the indexes of changed folders from the items in them.
func (w *Writer) Close() error {
	var errs []error
	for _, of := range w.jobs {
		for list := range of.dirty {
			errs = append(errs, w.writeIndex(of.name, list))
		}
	}
	return errors.Join(append(errs, w.root.Close())...)
}

// writeIndex writes the item IDs of a folder to its index. It keeps the index's other fields.
func (w *Writer) writeIndex(job, list string) error {
	all, err := w.idsIn(list)
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
	at := path.Join(path.Dir(list), IndexFile)
	says := object{}
	if raw, _, err := load(w.root, filepath.FromSlash(at), nil); err == nil {
		if json.Unmarshal(raw, &says) != nil || says == nil {
			says = object{} // damaged: replace it
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path.Join(w.name, at), err)
	}
	ours, err := objectOf([]field{{"job_id", job}, {"item_count", len(ids)}, {"item_ids", ids}, {"updated_at", timestamp(w.now())}})
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
	return errors.Join(w.writeFile(at, text), w.sync(list), w.sync(path.Dir(list)))
}

// sync syncs the names in a folder.
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

// writeFile writes a whole file: under another name first, and renames it after it is synced.
func (w *Writer) writeFile(at string, text []byte) (err error) {
	name := filepath.FromSlash(at)
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprint(".nixie-new-", os.Getpid())) // other processes may write too
	defer func() {
		if err != nil {
			err = unwritable(path.Join(w.name, at), errors.Join(err, removeIfExists(w.root, temporary)))
		}
	}()
	file, err := w.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return w.root.Rename(temporary, name)
}

func removeIfExists(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func unwritable(name string, err error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be written: %w", name, err)
}

// maxFileName limits the bytes of a file name.
const maxFileName = 200

// FileName makes a file name from the ID of an item or job. It writes bytes that are not allowed or
// could lead to another folder as %XX, and ends a long name with a hash. No two IDs get the same
// name, on systems whose file names distinguish capitals.
func FileName(id string) string {
	var b strings.Builder
	for i, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_@=+, ", c) >= 0, c == '.' &&
			i > 0, c >= utf8.RuneSelf:
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
