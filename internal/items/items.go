// Package items reads a list of work from a file or standard input. The items are JSON lines, the
// elements of a JSON array, CSV rows or plain lines.
//
// An item stays as it is written. The body of a JSON item has the bytes of the list, so that
// numbers, duplicate keys and white space survive. The reader streams the list; its memory grows by
// a hash of 16 bytes and a line number per item.
package items

import (
	"bytes"
	"cmp"
	"io"

	"github.com/nixie-go/nixie"
)

// Format is the format of a list.
type Format string

// The formats.
const (
	Auto  Format = "auto"  // by the file's suffix, otherwise by its first bytes
	JSONL Format = "jsonl" // a JSON value per line; empty lines are skipped
	JSON  Format = "json"  // a JSON document: its elements, or those that a JSON path selects
	CSV   Format = "csv"   // a header, then a row per item; commas, or semicolons or tabs if the header has no comma
	Lines Format = "lines" // a line per item, any bytes; empty lines are skipped
)

// Formats lists every format once.
func Formats() []Format { return []Format{Auto, JSONL, JSON, CSV, Lines} }

// DefaultIDField is the field that holds the ID of an item.
const DefaultIDField = "id"

// Options describe a list. The zero value of a field is its default.
type Options struct {
	Path     string     // of the list; "-" is Stdin
	Stdin    io.Reader  // needed for Path "-"
	Format   Format     // default [Auto]
	JSONPath string     // selects the items of a JSON document, see [Open]; it implies the format
	IDField  string     // path of the field with the ID, see [Item.Field]; default [DefaultIDField]
	SkipBad  bool       // return bad items with Bad set, not as an error
	Objects  bool       // records without IDs: a JSON document may be one record, and other text is CSV
	MaxItem  int64      // limit of an item's bytes; default [nixie.MaxBody]
	TempDir  string     // of the copies of standard input and pipes; default [os.TempDir]
	Select   *Selection // filters and orders the items; nil takes all in the order of the list
}

// Item is an item of a list.
type Item struct {
	// ID is unique in the list: 1 to [nixie.MaxName] bytes of UTF-8 without control characters. It
	// is the text of the ID field: the value of a string, or a number as written. A bad item and
	// one without the field, or with null in it, get "sha256-<32 hex digits>-<ordinal>". The digits
	// are the first half of the hash of Body; the ordinal counts earlier items with the same bytes.
	// So the ID is the same after a restart and at another position in the list.
	ID string

	// Name is for people: the ID, or a plain line itself. A line that is blank, is not text, is
	// longer than [nixie.MaxName] bytes or came before has the name "line N: " with its beginning.
	Name string

	// Body has the bytes of the item; the caller may keep it. For JSONL and lines it is the line
	// without its end, for JSON the element. For CSV it is a JSON object with the header's names in
	// their order. Its values are strings without the enclosing quotes, and with line ends as they
	// are. For a bad item it is the raw text, at most [nixie.MaxBody] bytes; for a bad record, of
	// Options.Objects, it is nil.
	Body []byte

	Line   int   // of its first byte; the first is 1
	Column int   // counted in bytes; the first is 1
	Bad    error // the error of a bad item, an *[InputError]; only with Options.SkipBad

	plain bool // not JSON
}

// IsLine reports whether an item is a plain line, not JSON.
func (i *Item) IsLine() bool { return i.plain }

// Summary counts the items of a list.
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
	start  int64             // offset of the list in file, after a byte order mark
	format Format
	comma  byte
	end    byte  // of a line
	empty  int64 // see Empty
	path   []selector

	parser parser
	ids    *identities
	failed error // the error that ended the list

	selected []Item // the selection, after it was made
	at       int    // index of the next in selected
}

// parser cuts a list into items. The body that it returns is valid up to its next call.
type parser interface {
	next() (found, error) // io.EOF at the end; *InputError or a read error
}

// found is an item before it has an ID.
type found struct {
	body         []byte // of the item
	raw          []byte // as in the list, for a bad item
	line, column int
	size         int64       // of raw before it was cut
	bad          *InputError // an error after which the parser can go on
}

// Open opens a list. It copies standard input and other files that cannot be read twice to a
// temporary file, which has no name and ends with the reader.
//
// Options.JSONPath takes the subset of RFC 9535 that needs no document in memory: $, .name,
// ['name'], [3], [*], .* and [from:to:step], without negative numbers. A path without a wildcard or
// slice leads to an array, whose elements are the items. A path with them leads to the items.
// Without a path the document is the array.
//
// Errors have the code not-found for a missing file, unavailable for an unreadable one, and invalid
// for errors of the list or the options.
func Open(opts Options) (*Reader, error) {
	if opts.IDField == "" {
		opts.IDField = DefaultIDField
	}
	r := &Reader{opts: opts, name: opts.Path, format: opts.Format}
	if err := r.readPath(); err != nil {
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

// Format returns the format of the list; never [Auto].
func (r *Reader) Format() Format { return r.format }

// Empty counts the rows of a CSV list that have separators only, which are skipped. It is known
// once the list was read to its end.
func (r *Reader) Empty() int64 { return r.empty }

// Close closes the file.
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
		r.parser = &table{lines: r.lineReader(), comma: r.comma}
	case JSONL:
		r.parser = &lineParser{lines: r.lineReader(), json: true}
	default:
		r.parser = &lineParser{lines: r.lineReader()}
	}
	return nil
}

func (r *Reader) lineReader() *lineReader {
	lines := newLineReader(r.name, r.file)
	lines.limit, lines.end = r.limit(), r.end
	return lines
}

// limit returns the limit of an item's bytes.
func (r *Reader) limit() int { return int(cmp.Or(r.opts.MaxItem, nixie.MaxBody)) }

// Check reads the whole list from its beginning, returns the first error, and rewinds: then Next
// starts at the first item. A file that changes afterwards can still hold errors.
func (r *Reader) Check() (Summary, error) {
	if err := r.Rewind(); err != nil {
		return Summary{}, err
	}
	sum := Summary{Format: r.format}
	for {
		item, err := r.next()
		switch {
		case err == io.EOF && r.opts.Select != nil && r.selected == nil:
			return sum, r.makeSelection()
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

// Next returns the next item, and io.EOF after the last. Other errors are an *[InputError] with
// code invalid or limit. They have code unavailable when reading failed. Next returns such an error
// again. With Options.SkipBad it returns a bad item with Bad set. An error then means that the rest
// of the list is unreadable: a broken JSON document, a wrong CSV header, a quote that is never
// closed.
func (r *Reader) Next() (Item, error) {
	if r.opts.Select != nil {
		return r.nextSelected()
	}
	item, err := r.next()
	if err == nil {
		item.Body = append(make([]byte, 0, len(item.Body)), item.Body...)
	}
	return item, err
}

// nextSelected returns the next selected item; the first call makes the selection.
func (r *Reader) nextSelected() (Item, error) {
	if r.selected == nil {
		if err := r.makeSelection(); err != nil {
			r.failed = err
			return Item{}, err
		}
	}
	if r.at == len(r.selected) {
		return Item{}, io.EOF
	}
	r.at++
	item := r.selected[r.at-1]
	item.Body = bytes.Clone(item.Body)
	return item, nil
}

// makeSelection makes the selection, from the beginning of the list.
func (r *Reader) makeSelection() error {
	if err := r.Rewind(); err != nil {
		return err
	}
	if err := r.selectItems(); err != nil {
		return err
	}
	return r.Rewind()
}

// next returns the next item with a body that is valid up to the next call.
func (r *Reader) next() (Item, error) {
	if r.failed != nil {
		return Item{}, r.failed
	}
	f, err := r.parser.next()
	if t, ok := r.parser.(*table); ok && err == io.EOF {
		r.empty = t.empty
	}
	if err != nil {
		r.failed = err
		return Item{}, err
	}
	item := Item{Body: f.body, Line: f.line, Column: f.column, plain: r.format == Lines}
	bad := f.bad
	if bad == nil {
		bad = r.checkItem(&f)
	}
	if bad == nil && !r.opts.Objects {
		item.ID, bad = r.ids.idOf(r.name, &item)
	}
	if bad == nil {
		item.Name = item.displayName()
		return item, nil
	}
	if !r.opts.SkipBad {
		r.failed = bad
		return Item{}, bad
	}
	item.Body, item.Bad = f.raw[:min(len(f.raw), nixie.MaxBody)], bad
	if r.opts.Objects {
		item.Body = nil
	} else {
		item.ID = r.ids.contentID(item.Body)
		item.Name = item.displayName()
	}
	return item, nil
}

// checkItem checks the size of an item, and the UTF-8 of JSON.
func (r *Reader) checkItem(f *found) *InputError {
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
