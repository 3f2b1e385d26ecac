package items

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/nixie-go/nixie"
)

// document finds items in one JSON document. It holds the path from the top to the present item,
// not the document.
type document struct {
	scanner
	path    []selector
	given   string // the path as the user wrote it, or empty
	open    []level
	objects bool // the document may be an item
	began   bool
	reached int // steps of the path that led to a value
	entered int // of them, those that began in an array or object
}

// level is an array or object on the path to an item.
type level struct {
	closing byte
	index   int64
	matched int // line of the member that its step names; 0 before it comes
}

func newDocument(list string, from io.Reader, path []selector, given string) *document {
	return &document{scanner: scanner{list: list, from: from, line: 1, limit: nixie.MaxBody}, path: path, given: given}
}

func (d *document) next() (found, error) {
	if !d.began {
		d.began = true
		d.space()
		if _, ok := d.peek(); !ok {
			return found{}, d.endError(io.EOF) // an empty list
		}
		if c, _ := d.peek(); d.objects && d.given == "" && c == '{' {
			d.reached, d.entered = len(d.path), len(d.path)
			return d.item()
		}
		if err := d.descend(); err != nil {
			return found{}, err
		}
	}
	for len(d.open) > 0 {
		top := &d.open[len(d.open)-1]
		end, err := d.separator(top.closing, top.index == 0)
		if err != nil {
			return found{}, err
		}
		if end {
			d.depth--
			d.open = d.open[:len(d.open)-1]
			continue
		}
		chosen, err := d.onPath(top)
		top.index++
		switch {
		case err != nil:
			return found{}, err
		case !chosen:
			err = d.value()
		case len(d.open) == len(d.path):
			return d.item()
		default:
			err = d.descend()
		}
		if err != nil {
			return found{}, err
		}
	}
	d.space()
	if _, more := d.peek(); more {
		return found{}, d.fail("text after the end of the JSON document: if the list has a JSON value per line, say --format jsonl")
	}
	if missing := d.checkReached(); missing != nil {
		return found{}, missing
	}
	return found{}, d.endError(io.EOF)
}

// endError returns err, or the error that ended the reading.
func (d *document) endError(err error) error {
	if d.err != nil && d.err != io.EOF {
		return unreadable(d.list, d.err)
	}
	return err
}

// onPath reads past the name of a member and reports whether its value is on the path.
func (d *document) onPath(top *level) (bool, error) {
	step := &d.path[len(d.open)-1]
	if top.closing == ']' {
		if !step.matches(top.index) {
			return false, nil
		}
		d.reached = max(d.reached, len(d.open))
		return true, nil
	}
	if c, _ := d.peek(); c != '"' {
		return false, d.unexpected("a name in double quotes")
	}
	line, column := d.line, d.column()
	d.keeping, d.kept = true, d.pos
	err := d.str()
	var name []byte // nil when the name is larger than an item may be
	if d.keeping {
		name = d.buf[d.kept:d.pos]
	}
	d.keeping = false
	if err != nil {
		return false, err
	}
	chosen := step.kind == wildcard || name != nil && sameName(name, step.name)
	if err := d.colon(); err != nil || !chosen {
		return false, err
	}
	if step.kind == byName && top.matched > 0 {
		return false, &InputError{List: d.list, Line: line, Column: column, Code: nixie.CodeInvalid,
			Text: fmt.Sprintf("%s occurs twice, first in line %d: remove one", visible([]byte(step.text)), top.matched)}
	}
	top.matched = line
	d.reached = max(d.reached, len(d.open))
	return true, nil
}

// sameName compares a name as written, with its quotes, to a plain one.
func sameName(written []byte, name string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1:len(written)-1]) == name
	}
	return unquote(written) == name
}

// unquote returns the text of a valid JSON string.
func unquote(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1 : len(written)-1])
	}
	var text string
	if err := json.Unmarshal(written, &text); err != nil { // it was scanned before
		return string(written)
	}
	return text
}

// descend opens the array or object that the next step enters, or reads past a value that it cannot
// enter.
func (d *document) descend() error {
	c, _ := d.peek()
	step := &d.path[len(d.open)]
	if step.opens(c) {
		d.open = append(d.open, level{closing: c + 2}) // in ASCII, ] and } follow [ and { by two
		d.entered = max(d.entered, len(d.open))
		return d.enter()
	}
	what := ""
	switch {
	case c == '{':
		what = "an object"
	case c == '"':
		what = "a string"
	case c == '-' || c >= '0' && c <= '9':
		what = "a number"
	case c == 't' || c == 'f' || c == 'n':
		what = "true, false or null"
	}
	if step.kind != element || what == "" {
		return d.value()
	}
	if d.objects && d.given == "" {
		return d.fail("the document is %s: want an object, or an array of objects", what)
	}
	if d.given == "" {
		return d.fail("the document is %s: choose its items with --json-path, such as '$.items', "+
			"or say --format jsonl if the list has a value per line", what)
	}
	return d.fail("%s is %s, not an array of items: name the array, or choose the items with [*]", visible([]byte(step.text)), what)
}

// checkReached refuses a path that leads to no value; an array without elements is a value.
func (d *document) checkReached() error {
	for i, s := range d.path {
		many := s.kind != byName && s.kind != byIndex
		if many && i < d.entered {
			return nil
		}
		if many || i >= d.reached {
			return &InputError{List: d.list, Line: 1, Column: 1, Code: nixie.CodeInvalid,
				Text: fmt.Sprintf("the document has no %s: check --json-path", visible([]byte(s.text)))}
		}
	}
	return nil
}

// item reads the next value and returns it.
func (d *document) item() (found, error) {
	f := found{line: d.line, column: d.column()}
	start := d.base + int64(d.pos)
	d.keeping, d.kept, d.cut = true, d.pos, nil
	err := d.value()
	d.keeping = false
	if err != nil {
		return f, err
	}
	f.size = d.base + int64(d.pos) - start
	if f.raw = d.cut; f.raw == nil {
		f.raw = d.buf[d.kept:d.pos]
	}
	f.body, f.raw = f.raw, f.raw[:min(len(f.raw), d.limit)]
	return f, nil
}
