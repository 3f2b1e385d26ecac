// Package items reads a list of work: JSON lines, the elements of a JSON
// array, CSV rows or plain lines, from a file or standard input.
//
// An item is kept as it is written: the body of a JSON item is the very bytes of
// the list, so that numbers, duplicate keys and white space survive. A list is
// streamed; what grows with it is 16 bytes of hash and a line number per item.
package items

import (
	"bytes"
	"cmp"
	"io"

	"github.com/nixie-go/nixie"
)

// Format is how a list is written.
type Format string

// The formats.
const (
	Auto  Format = "auto"  // by the file's suffix, else by its first bytes
	JSONL Format = "jsonl" // a JSON value per line; empty lines are skipped
	JSON  Format = "json"  // a JSON document: its elements, or what a JSON path chooses
	CSV   Format = "csv"   // a header, then a row per item; commas, or semicolons or tabs if the header has no comma
	Lines Format = "lines" // a line per item, any bytes; empty lines are skipped
)

// Formats lists every format once.
func Formats() []Format { return []Format{Auto, JSONL, JSON, CSV, Lines} }

// DefaultIDField is the field that holds the ID of an item.
const DefaultIDField = "id"

// Options say what to read and how. The zero value of a field is its default.
type Options struct {
	Path     string    // of the list; "-" is Stdin
	Stdin    io.Reader // needed for Path "-"
	Format   Format    // default [Auto]
	JSONPath string    // with JSON: what the items are, see [Open]; it implies the format
	IDField  string    // path of the field with the ID, see [Item.Fields]; default [DefaultIDField]
	SkipBad  bool      // return bad items with Bad set, not as an error
	Objects  bool      // of records that have no IDs: a JSON document may be one of them, and what is no JSON is CSV
	MaxItem  int64     // bytes an item may have; default [nixie.MaxBody]
	TempDir  string    // where standard input and pipes are spooled; default [os.TempDir]
	Choice   *Choice   // which items, and in which order; nil is all as they stand
}

// Item is one piece of work.
type Item struct {
	// ID is unique in the list: 1 to [nixie.MaxName] bytes of UTF-8 without
	// control characters. It is the text of the ID field: a string's value, a
	// number as written. An item without the field, or with null in it, and a
	// bad item get "sha256-<32 hex digits>-<ordinal>": the first half of the
	// hash of Body and how many items with the same bytes came before. So it is
	// the same after a restart and wherever the item stands in the list.
	ID string

	// Name is what people call it: the ID, or of a plain line the line itself.
	// A line that was there before, is blank, no text or longer than
	// [nixie.MaxName] bytes is called "line N: " and its beginning.
	Name string

	// Body is the item byte for byte, the caller's to keep: of JSONL and lines
	// the line without its end, of JSON the bytes of the element, of CSV a JSON
	// object that has the header's names in their order and strings as values:
	// each what the field holds without its enclosing quotes, line ends inside
	// untouched. Of a bad item it is the raw text, at most Options.MaxItem bytes.
	Body []byte

	Line   int   // where it begins; the first is 1
	Column int   // counted in bytes; the first is 1
	Bad    error // what is wrong with it, an *[InputError]; only with Options.SkipBad

	plain bool // not JSON
}

// IsLine reports whether an item is a plain line, not JSON.
func (i *Item) IsLine() bool { return i.plain }

// Summary is what [Reader.Check] found.
type Summary struct {
	Format Format // never Auto
	Items  int64  // without the bad ones
	Bytes  int64  // of their bodies
	Bad    int64  // only with Options.SkipBad
}

// Reader streams the items of a list. It is not safe for concurrent use.
type Reader struct {
	opts   Options
	name   string            // of the list, for errors
	file   io.ReadSeekCloser // the list, or the spooled copy of it
	start  int64             // where the list begins in file: after a byte order mark
	format Format
	comma  byte
	path   []selector

	parser parser
	ids    *identities
	failed error // the error that ended the list

	chosen []Item // of a choice, once it is made
	at     int    // the next of chosen
}

// parser cuts a list into items. The body it finds is valid up to its next call.
type parser interface {
	next() (found, error) // io.EOF at the end; *InputError or a read error
}

// found is an item before it has an ID.
type found struct {
	body         []byte // what the handler gets
	raw          []byte // as it stands in the list, for a bad item
	line, column int
	size         int64       // of raw, also when it was cut
	bad          *InputError // what is wrong; the parser can go on after it
}

// Open opens a list. Standard input and everything else that cannot be read
// twice is first copied to a temporary file that has no name and ends with the
// reader.
//
// Options.JSONPath is a subset of RFC 9535 that can be followed without holding
// the document: $, .name, ['name'], [3], [*], .* and [from:to:step], with no
// negative numbers. A path without a wildcard or slice leads to an array, and the
// items are its elements; one with them chooses the items themselves. Without a
// path the document is the array.
//
// Errors have the code not-found for a missing file, unavailable for one that
// cannot be read, and invalid for everything that the caller can mend.
func Open(opts Options) (*Reader, error) {
	if opts.IDField == "" {
		opts.IDField = DefaultIDField
	}
	r := &Reader{opts: opts, name: opts.Path, format: opts.Format}
	if err := r.choosePath(); err != nil {
		return nil, err
	}
	if err := r.openFile(); err != nil {
		return nil, err
	}
	err := r.detect()
	if err == nil {
		err = r.Rewind()
	}
	if err != nil {
		_ = r.file.Close() // it was only read
		return nil, err
	}
	return r, nil
}

// Format is how the list is written; never [Auto].
func (r *Reader) Format() Format { return r.format }

// Close gives the file back.
func (r *Reader) Close() error { return r.file.Close() }

// Rewind goes back to the first item.
func (r *Reader) Rewind() error {
	if _, err := r.file.Seek(r.start, io.SeekStart); err != nil {
		return unreadable(r.name, err)
	}
	r.failed, r.at = nil, 0
	r.ids = newIdentities(r.opts.IDField)
	switch r.format {
	case JSON:
		d := newDocument(r.name, r.file, r.path, r.opts.JSONPath)
		d.limit, d.objects = r.limit(), r.opts.Objects
		r.parser = d
	case CSV:
		t := newTable(r.name, r.file, r.comma)
		t.lines.limit = r.limit()
		r.parser = t
	case JSONL:
		r.parser = &lineParser{lines: r.lineReader(), json: true}
	default:
		r.parser = &lineParser{lines: r.lineReader()}
	}
	return nil
}

func (r *Reader) lineReader() *lineReader {
	lines := newLineReader(r.name, r.file)
	lines.limit = r.limit()
	return lines
}

// limit is how many bytes an item may have.
func (r *Reader) limit() int { return int(cmp.Or(r.opts.MaxItem, nixie.MaxBody)) }

// Check reads the whole list from its beginning, returns the first error, and
// rewinds: after it Next starts at the first item. A file that is changed
// afterwards can still hold errors.
func (r *Reader) Check() (Summary, error) {
	if err := r.Rewind(); err != nil {
		return Summary{}, err
	}
	sum := Summary{Format: r.format}
	for {
		item, err := r.next()
		switch {
		case err == io.EOF && r.opts.Choice != nil && r.chosen == nil:
			return sum, r.pick()
		case err == io.EOF:
			return sum, r.Rewind()
		case err != nil:
			return sum, err
		case item.Bad != nil:
			sum.Bad++
		default:
			sum.Items++
			sum.Bytes += int64(len(item.Body))
		}
	}
}

// Next returns the next item, and io.EOF after the last. Other errors are an
// *[InputError] with code invalid or limit, or unavailable when reading failed;
// after one of them Next returns the same again. With Options.SkipBad an item
// that is bad in itself is returned with Bad set, and only what makes the
// rest of the list unreadable is an error: a JSON document that is broken, a
// CSV header that is wrong, a quote that is never closed.
func (r *Reader) Next() (Item, error) {
	if r.opts.Choice != nil {
		return r.nextChosen()
	}
	item, err := r.next()
	if err == nil {
		item.Body = append(make([]byte, 0, len(item.Body)), item.Body...)
	}
	return item, err
}

// nextChosen is Next of a choice, which is made first.
func (r *Reader) nextChosen() (Item, error) {
	if r.chosen == nil {
		if err := r.pick(); err != nil {
			r.failed = err
			return Item{}, err
		}
	}
	if r.at == len(r.chosen) {
		return Item{}, io.EOF
	}
	r.at++
	item := r.chosen[r.at-1]
	item.Body = bytes.Clone(item.Body)
	return item, nil
}

// pick makes the choice, from the beginning of the list.
func (r *Reader) pick() error {
	if err := r.Rewind(); err != nil {
		return err
	}
	if err := r.choose(); err != nil {
		return err
	}
	return r.Rewind()
}

// next is Next with a body that is valid up to the next call.
func (r *Reader) next() (Item, error) {
	if r.failed != nil {
		return Item{}, r.failed
	}
	f, err := r.parser.next()
	if err != nil {
		r.failed = err
		return Item{}, err
	}
	item := Item{Body: f.body, Line: f.line, Column: f.column, plain: r.format == Lines}
	bad := f.bad
	if bad == nil {
		bad = r.judge(&f)
	}
	if bad == nil && !r.opts.Objects {
		item.ID, bad = r.ids.name(r.name, &item)
	}
	if bad == nil {
		item.Name = item.called()
		return item, nil
	}
	if !r.opts.SkipBad {
		r.failed = bad
		return Item{}, bad
	}
	item.Body, item.Bad = f.raw, bad
	if !r.opts.Objects {
		item.ID = r.ids.content(f.raw)
		item.Name = item.called()
	}
	return item, nil
}

// judge checks what holds for items of every format.
func (r *Reader) judge(f *found) *InputError {
	size := max(f.size, int64(len(f.body)))
	if size > int64(r.limit()) {
		return &InputError{List: r.name, Line: f.line, Column: f.column, Code: nixie.CodeLimit,
			Text: tooLarge(size, r.limit())}
	}
	if r.format == JSON || r.format == JSONL {
		return checkUTF8(r.name, f.body, f.line, f.column)
	}
	return nil
}
