package items

import (
	"fmt"
	"io"

	"github.com/nixie-go/nixie"
)

// MaxColumns limits the columns of a CSV list.
const MaxColumns = 10_000

// table finds an item in each row of a CSV list (RFC 4180) after its header.
type table struct {
	lines  *lineReader
	comma  byte
	header [][]byte // each name as a JSON string with its colon

	empty     int64    // rows without a value, which were skipped
	row       []byte   // the row as written, without its end
	line      int      // of its first byte
	field     []byte   // the contents of the fields, one after the other
	ends      []int    // the end of each field in field
	positions [][2]int // line and column of each field
	object    []byte
}

// separatorName names the separator for people.
func (t *table) separatorName() string {
	switch t.comma {
	case ';':
		return "semicolon"
	case '\t':
		return "tab"
	}
	return "comma"
}

func (t *table) next() (found, error) {
	if t.header == nil {
		if err := t.readHeader(); err != nil {
			return found{}, err
		}
	}
	bad, err := t.readRow()
	for err == nil && bad == nil && t.hasNoValue() {
		t.empty++
		bad, err = t.readRow()
	}
	if err != nil {
		return found{}, err
	}
	f := found{raw: t.row, line: t.line, column: 1, size: int64(len(t.row)), bad: bad}
	if bad != nil {
		return f, nil
	}
	if f.bad = checkUTF8(t.lines.list, t.row, t.line, 1); f.bad != nil {
		return f, nil
	}
	if len(t.ends) != len(t.header) {
		f.bad = t.fault(t.line, 1, t.row, 0, "the row has %d fields, the header has %d: add or remove %ss, or quote a field that holds one",
			len(t.ends), len(t.header), t.separatorName())
		return f, nil
	}
	t.object = append(t.object[:0], '{')
	from := 0
	for i, name := range t.header {
		if i > 0 {
			t.object = append(t.object, ',')
		}
		t.object = append(t.object, name...)
		t.object = appendQuoted(t.object, t.field[from:t.ends[i]])
		from = t.ends[i]
	}
	t.object = append(t.object, '}')
	f.body = t.object
	return f, nil
}

// hasNoValue reports whether a row has separators only, as spreadsheets write below their last row.
func (t *table) hasNoValue() bool {
	return len(t.ends) > 1 && len(t.row) == len(t.ends)-1 // each byte is a separator
}

// fault makes an error that shows text with a caret at byte at.
func (t *table) fault(line, column int, text []byte, at int, format string, args ...any) *InputError {
	return &InputError{List: t.lines.list, Line: line, Column: column, Code: nixie.CodeInvalid,
		Text: fmt.Sprintf(format, args...), excerpt: excerpt(withoutEnd(text), at)}
}

func (t *table) readHeader() error {
	bad, err := t.readRow()
	if err != nil {
		return err
	}
	if bad == nil {
		bad = checkUTF8(t.lines.list, t.row, t.line, 1)
	}
	if bad == nil && len(t.ends) > MaxColumns {
		bad = t.fault(t.line, 1, t.row, 0, "the header has %d columns, the limit is %d: drop some", len(t.ends), MaxColumns)
	}
	if bad != nil {
		return bad
	}
	names := make(map[string]int, len(t.ends))
	header := make([][]byte, len(t.ends))
	from := 0
	for i, end := range t.ends {
		name := string(t.field[from:end])
		line, column := t.positions[i][0], t.positions[i][1]
		if name == "" {
			return t.fault(line, column, t.row, column-1, "column %d of the header has no name: name it", i+1)
		}
		if first, twice := names[name]; twice {
			return t.fault(line, column, t.row, column-1, "columns %d and %d of the header are both called \"%s\": rename one", first, i+1,
				visible([]byte(name)))
		}
		names[name] = i + 1
		header[i] = append(appendQuoted(nil, []byte(name)), ':')
		from = end
	}
	t.header = header
	return nil
}

// rowState is the state of the row reader.
type rowState int8

const (
	fieldStart rowState = iota
	plainField
	quotedField
	afterQuote // after a quote inside quotes: the end of the field, or half of ""
)

// readRow reads the next row that is not empty. A row has more than one line when a quoted field
// holds line ends. The reading can go on after a bad row, but not after an error.
func (t *table) readRow() (bad *InputError, err error) {
	t.row, t.field, t.ends, t.positions, t.line = t.row[:0], t.field[:0], t.ends[:0], t.positions[:0], 0
	state := fieldStart
	quote := [2]int{} // the position of the last opening quote
	for {
		text, size, err := t.lines.next()
		if err == io.EOF && t.line > 0 {
			return nil, &InputError{List: t.lines.list, Line: quote[0], Column: quote[1], Code: nixie.CodeInvalid,
				Text: "the quote that begins here is never closed: close it, or double a quote that belongs to a field"}
		}
		if err != nil {
			return nil, err
		}
		if t.line == 0 {
			if len(t.lines.trim(text)) == 0 {
				continue
			}
			t.line = t.lines.line
		}
		if total := size + int64(len(t.row)); total > int64(t.lines.limit) {
			// The rest of the row stays unread, so the beginning of the next row is unknown.
			return nil, &InputError{List: t.lines.list, Line: t.line, Column: 1, Code: nixie.CodeLimit,
				Text: fmt.Sprintf("the row has at least %d bytes, the limit is %d: close an open quote, "+
					"or store large fields elsewhere and list references",
					total, t.lines.limit)}
		}
		t.row = append(t.row, text...)
		bad, state = t.readLine(text, state, &quote)
		if bad == nil && state == quotedField {
			continue
		}
		t.row = t.lines.trim(t.row)
		return bad, nil
	}
}

// readLine reads the fields of one line of a row.
func (t *table) readLine(text []byte, state rowState, quote *[2]int) (*InputError, rowState) {
	body := t.lines.trim(text)
	for at := 0; ; at++ {
		ended := at >= len(body)
		if ended && state == quotedField {
			t.field = append(t.field, text[len(body):]...) // the line end belongs to the field
			return nil, state
		}
		if ended || state != quotedField && body[at] == t.comma {
			if state == fieldStart {
				t.positions = append(t.positions, [2]int{t.lines.line, at + 1})
			}
			t.ends = append(t.ends, len(t.field))
			state = fieldStart
			if ended {
				return nil, state
			}
			continue
		}
		c := body[at]
		if state == fieldStart {
			t.positions = append(t.positions, [2]int{t.lines.line, at + 1})
		}
		switch {
		case state == fieldStart && c == '"':
			*quote = [2]int{t.lines.line, at + 1}
			state = quotedField
		case state == quotedField && c == '"':
			state = afterQuote
		case state == quotedField:
			t.field = append(t.field, c)
		case state == afterQuote && c == '"':
			t.field = append(t.field, c)
			state = quotedField
		case state == afterQuote:
			return t.fault(t.lines.line, at+1, body, at,
					"text after a closing quote: put a %s between them, or double a quote that belongs to the field", t.separatorName()),
				fieldStart
		case c == '"':
			return t.fault(t.lines.line, at+1, body, at,
				"a quote inside a field without quotes: put the whole field in quotes and double the quote"), fieldStart
		default:
			t.field = append(t.field, c)
			state = plainField
		}
	}
}

// appendQuoted appends UTF-8 text as a JSON string. The form never changes, because the IDs of rows
// without an ID field depend on it.
func appendQuoted(to, text []byte) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c == '\n':
			to = append(to, '\\', 'n')
		case c == '\r':
			to = append(to, '\\', 'r')
		case c == '\t':
			to = append(to, '\\', 't')
		case c < ' ':
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
