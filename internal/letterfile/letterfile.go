// Package letterfile reads and writes files of letters. It reads the output of nixie dlq export,
// which is a JSON array, JSON lines or CSV. It also reads dead letter items of MapReduce jobs,
// alone, in a list, or in the folders of such jobs.
//
// It streams a file. It returns an unreadable record as such and continues after it. Package
// itemfile reads and writes the items.
package letterfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/items"
)

// MaxRecord limits the bytes of a record.
const MaxRecord = itemfile.MaxItem

// Options describe a file of letters.
type Options struct {
	Path    string       // of a file or folder; "-" is Stdin
	Stdin   io.Reader    // needed for Path "-"
	Format  items.Format // JSON, JSONL, CSV or Auto, the default
	Queue   string       // of all letters; empty means the queue that each names
	TempDir string       // of the copy of standard input; default [os.TempDir]
}

// Record is one record of a file: a letter, or the error of an unreadable one.
type Record struct {
	Letter   nixie.Letter
	Position string // in the file, for people
	Masked   bool   // secrets were hidden when it was written, so it is incomplete
	Err      error  // names the position
}

// Reader streams the records of a file. It is not safe for concurrent use.
type Reader struct {
	opts Options
	from source
}

// source finds the records of a file or folder.
type source interface {
	// next returns io.EOF after the last; after another error it is not called
	// again.
	next() (rawRecord, error)
	Close() error
}

// rawRecord is a record before it becomes a letter.
type rawRecord struct {
	raw      []byte // JSON; for CSV an object of strings
	position string // for errors
	job      string // of its folder
	bad      error  // of an unreadable record, which has no raw
}

// Open opens a file or folder. Errors are those of [items.Open].
func Open(opts Options) (*Reader, error) {
	if opts.Format == "" {
		opts.Format = items.Auto
	}
	if opts.Format == items.Lines {
		return nil, nixie.Errorf(nixie.CodeInvalid, "format lines is not one of letters: give json, jsonl or csv")
	}
	if err := nixie.CheckName("queue", opts.Queue); err != nil {
		return nil, err
	}
	if about, err := os.Stat(opts.Path); err == nil && about.IsDir() {
		if opts.Format != items.Auto && opts.Format != items.JSON {
			return nil, nixie.Errorf(nixie.CodeInvalid, "%s is a folder, and the format is %s: a folder holds JSON files", opts.Path,
				opts.Format)
		}
		from, err := openFolder(opts.Path)
		if err != nil {
			return nil, err
		}
		return &Reader{opts, from}, nil
	}
	list, err := items.Open(items.Options{
		Path: opts.Path, Stdin: opts.Stdin, Format: opts.Format, TempDir: opts.TempDir, SkipBad: true, Objects: true, MaxItem: MaxRecord,
	})
	if err != nil {
		return nil, err
	}
	return &Reader{opts, &file{list, opts.Path}}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.from.Close() }

// Next returns the next record, and io.EOF after the last. Another error means that the rest is
// unreadable; it is the last.
func (r *Reader) Next() (Record, error) {
	t, err := r.from.next()
	if err != nil {
		return Record{}, err
	}
	if t.bad != nil {
		return Record{Err: t.bad}, nil
	}
	rec, err := r.record(&t)
	if err == nil && r.opts.Queue != "" {
		rec.Letter.Message.Queue = r.opts.Queue
	}
	if err == nil {
		err = check.Letter(&rec.Letter)
	}
	if err != nil {
		return Record{Err: fmt.Errorf("%s: %w", t.position, err)}, nil
	}
	rec.Position = t.position
	return rec, nil
}

// record detects the layout of a record and reads it.
func (r *Reader) record(t *rawRecord) (Record, error) {
	if f, ok := r.from.(*file); ok && f.list.Format() == items.CSV {
		return fromRow(t.raw)
	}
	var has struct {
		Item    *any `json:"item_id"`
		Message *any `json:"message"`
		Listed  *any `json:"item_ids"`
	}
	err := itemfile.Decode(t.raw, &has, false)
	switch {
	case err != nil:
		return Record{}, err
	case has.Item != nil && has.Message == nil:
		l, err := r.fromItem(t)
		return Record{Letter: l}, err
	case has.Message != nil:
		return fromDetail(t.raw)
	case has.Listed != nil:
		return Record{},
			nixie.Errorf(nixie.CodeInvalid, "it lists the items of a job, which lie in files next to it: give its folder")
	}
	return Record{},
		nixie.Errorf(nixie.CodeInvalid,
			"it has neither message, as the letters of nixie dlq export do, nor item_id, as dead letter items of MapReduce do")
}

func (r *Reader) fromItem(t *rawRecord) (nixie.Letter, error) {
	queue, channel := r.opts.Queue, t.job
	if queue == "" {
		if t.job == "" {
			return nixie.Letter{},
				nixie.Errorf(nixie.CodeInvalid, "an item names no queue: give one with --queue, such as mapreduce/JOB")
		}
		queue = itemfile.QueueOf(t.job)
	}
	if channel == "" {
		channel = queue
	}
	return itemfile.Read(t.raw, queue, channel)
}

// file reads the records of one file.
type file struct {
	list *items.Reader
	name string
}

func (f *file) Close() error { return f.list.Close() }

func (f *file) next() (rawRecord, error) {
	item, err := f.list.Next()
	switch {
	case errors.Is(err, io.EOF):
		return rawRecord{}, io.EOF
	case err != nil:
		return rawRecord{}, err
	}
	name := f.name
	if name == "-" {
		name = "standard input"
	}
	return rawRecord{raw: item.Body, position: fmt.Sprintf("%s:%d", name, item.Line), bad: item.Bad}, nil
}
