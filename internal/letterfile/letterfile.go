// Package letterfile reads and writes files of letters: the stories that
// nixie dlq export prints as a JSON array, JSON lines or CSV, and the dead
// letter items of MapReduce jobs, one JSON object each, alone, in a list or in
// the folders where such jobs keep them.
//
// A file is streamed; a record that cannot be read is returned as such and the
// reading goes on after it. Items are read and written by package itemfile.
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

// MaxRecord is how many bytes one record may have.
const MaxRecord = itemfile.MaxItem

// Options say what to read and how.
type Options struct {
	Path    string       // of a file or folder; "-" is Stdin
	Stdin   io.Reader    // needed for Path "-"
	Format  items.Format // JSON, JSONL, CSV or Auto, the default
	Queue   string       // where all letters go; empty is the queue that each names
	TempDir string       // where standard input is spooled; default [os.TempDir]
}

// Record is one record of a file: a letter, or why it is none.
type Record struct {
	Letter nixie.Letter
	Place  string // in the file, for people
	Masked bool   // what it says is not all true: secrets were hidden when it was written
	Err    error  // names the place
}

// Reader streams the records of a file. It is not safe for concurrent use.
type Reader struct {
	opts Options
	from source
}

// source finds the texts of records.
type source interface {
	// next returns io.EOF after the last; after another error it is not called
	// again.
	next() (text, error)
	Close() error
}

// text is a record before it is a letter.
type text struct {
	raw   []byte // JSON; of CSV an object of strings
	place string // for errors
	job   string // that its folder names
	bad   error  // why there is no raw
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
			return nil, nixie.Errorf(nixie.CodeInvalid, "%s is a folder, and the format is %s: a folder holds JSON files", opts.Path, opts.Format)
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

// Close gives the file back.
func (r *Reader) Close() error { return r.from.Close() }

// Next returns the next record, and io.EOF after the last. Another error means
// that nothing can be read after this place; it is the last.
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
		return Record{Err: fmt.Errorf("%s: %w", t.place, err)}, nil
	}
	rec.Place = t.place
	return rec, nil
}

// record tells the layouts apart.
func (r *Reader) record(t *text) (Record, error) {
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
		return fromStory(t.raw)
	case has.Listed != nil:
		return Record{}, nixie.Errorf(nixie.CodeInvalid, "it lists the items of a job, which lie in files beside it: give the folder that it is in")
	}
	return Record{}, nixie.Errorf(nixie.CodeInvalid, "it has neither message, as the letters of nixie dlq export do, nor item_id, as dead letter items of MapReduce do")
}

func (r *Reader) fromItem(t *text) (nixie.Letter, error) {
	queue, channel := r.opts.Queue, t.job
	if queue == "" {
		if t.job == "" {
			return nixie.Letter{}, nixie.Errorf(nixie.CodeInvalid, "an item names no queue: give one with --queue, mapreduce/JOB for example")
		}
		queue = itemfile.Queue(t.job)
	}
	if channel == "" {
		channel = queue
	}
	return itemfile.Read(t.raw, queue, channel)
}

// file is a list in one file.
type file struct {
	list *items.Reader
	name string
}

func (f *file) Close() error { return f.list.Close() }

func (f *file) next() (text, error) {
	item, err := f.list.Next()
	switch {
	case errors.Is(err, io.EOF):
		return text{}, io.EOF
	case err != nil:
		return text{}, err
	}
	name := f.name
	if name == "-" {
		name = "standard input"
	}
	return text{raw: item.Body, place: fmt.Sprintf("%s:%d", name, item.Line), bad: item.Bad}, nil
}
