package letterfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// object is a JSON object: its fields by name.
type object map[string]json.RawMessage

// csvColumn is a column: a field of a letter's detail, as text or as JSON.
type csvColumn struct {
	name string
	in   string // the object of the field; "" means the detail itself
	json bool
}

// csvColumns lists all columns. A field that a detail has twice has one column. Artifacts have
// none: they repeat the attachments of the last failure.
var csvColumns = [...]csvColumn{
	{name: "id"}, {name: "key", in: "message"}, {name: "queue", in: "message"}, {name: "type", in: "message"},
	{name: "status"}, {name: "cause"}, {name: "reason"}, {name: "class"}, {name: "signature"}, {name: "fingerprint"},
	{name: "redrivable", json: true}, {name: "needs_review", json: true}, {name: "rule"},
	{name: "attempts", in: "message", json: true}, {name: "deliveries", in: "message", json: true},
	{name: "crashes", in: "message", json: true},
	{name: "generation", in: "message", json: true}, {name: "redrives", in: "message", json: true},
	{name: "first_failed_at"}, {name: "last_failed_at"}, {name: "died_at"}, {name: "resolved_at"},
	{name: "operation"}, {name: "note"}, {name: "revision", json: true},
	{name: "message_id", in: "message"}, {name: "stream", in: "message"}, {name: "dedupe_key", in: "message"},
	{name: "priority", in: "message", json: true},
	{name: "state", in: "message"}, {name: "steps", in: "message", json: true}, {name: "order_gap", in: "message", json: true},
	{name: "origin", in: "message", json: true},
	{name: "enqueued_at", in: "message"}, {name: "redriven_at", in: "message"}, {name: "expires_at", in: "message"},
	{name: "first_received_at", in: "message"}, {name: "ended_at", in: "message"},
	{name: "sha256", in: "message"}, {name: "last_failure", in: "message"}, {name: "body", in: "message"},
	{name: "body_base64", in: "message"},
	{name: "headers", json: true}, {name: "history_dropped", json: true}, {name: "history", json: true}, {name: "damage", json: true},
	{name: "notes", json: true}, {name: "masked", json: true},
}

// field returns the name of a column's field in its object.
func (c csvColumn) field() string {
	if c.name == "message_id" {
		return "id"
	}
	return c.name
}

// isTime reports whether the cells are times; an empty cell means none.
func (c csvColumn) isTime() bool { return strings.HasSuffix(c.name, "_at") }

// CSVWriter writes letters as CSV (RFC 4180). It loses nothing, and it is safe for spreadsheets,
// which evaluate formulas, and for terminals, which obey control characters:
//
//   - a cell that begins with an apostrophe is text; the apostrophe is not part
//     of it. Text that begins with = + - @, a tab, a return or an apostrophe is
//     written so.
//   - after an apostrophe and a double quote the cell is a JSON string. Text
//     with characters that do not print is written so.
//   - of steps, origin, headers, history, damage and notes the cell is JSON.
//   - an empty cell is no value.
type CSVWriter struct{ to *csv.Writer }

// NewCSVWriter writes the header.
func NewCSVWriter(to io.Writer) (*CSVWriter, error) {
	w := &CSVWriter{csv.NewWriter(to)}
	names := make([]string, len(csvColumns))
	for i, c := range csvColumns {
		names[i] = c.name
	}
	return w, w.to.Write(names)
}

// Write writes a letter that was read whole; masked means that its secrets are hidden.
func (w *CSVWriter) Write(l *nixie.Letter, masked bool) error {
	raw, err := itemfile.Marshal(office.ViewLetterDetail(l))
	if err != nil {
		return err
	}
	var detail, message object
	if err := json.Unmarshal(raw, &detail); err != nil {
		return err
	}
	if err := json.Unmarshal(detail["message"], &message); err != nil {
		return err
	}
	if masked {
		detail["masked"] = json.RawMessage("true")
	}
	cells := make([]string, len(csvColumns))
	for i, c := range csvColumns {
		from := detail
		if c.in != "" {
			from = message
		}
		if cells[i], err = c.write(from[c.field()]); err != nil {
			return err
		}
	}
	return w.to.Write(cells)
}

// Close flushes the writer.
func (w *CSVWriter) Close() error {
	w.to.Flush()
	return w.to.Error()
}

func (c csvColumn) write(value json.RawMessage) (string, error) {
	switch {
	case len(value) == 0 || string(value) == "null":
		return "", nil
	case c.json:
		return string(ascii(value)), nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", err
	}
	switch {
	case strings.ContainsFunc(s, unprintable):
		return "'" + string(ascii(value)), nil
	case s != "" && strings.IndexByte("=+-@\t\r'", s[0]) >= 0:
		return "'" + s, nil
	}
	return s, nil
}

// unprintable reports whether a character must be escaped. A line end or a tab need not.
func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// ascii escapes unprintable characters in JSON, where they occur in strings only.
func ascii(value []byte) []byte {
	if !bytes.ContainsFunc(value, unprintable) {
		return value
	}
	var b bytes.Buffer
	for _, r := range string(value) {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// fromRow reads a letter from a row, an object of strings.
func fromRow(raw []byte) (Record, error) {
	var cells map[string]string
	if err := itemfile.Decode(raw, &cells, true); err != nil {
		return Record{}, err
	}
	if _, ok := cells["status"]; !ok {
		return Record{},
			nixie.Errorf(nixie.CodeInvalid, "the header has no column status: want the columns that nixie dlq export --format csv writes")
	}
	detail, message := object{}, object{}
	for _, c := range csvColumns {
		cell, ok := cells[c.name]
		if delete(cells, c.name); !ok {
			continue
		}
		value, err := c.read(cell)
		if err != nil {
			return Record{}, nixie.Errorf(nixie.CodeInvalid, "column %s: %w", c.name, err)
		}
		into := detail
		if c.in != "" {
			into = message
		}
		if value != nil {
			into[c.field()] = value
		}
	}
	for name := range cells {
		return Record{}, nixie.Errorf(nixie.CodeInvalid, "column %q is not one of a letter: remove it", name)
	}
	if _, binary := message["body_base64"]; binary && string(message["body"]) == `""` {
		delete(message, "body")
	}
	inner, err := itemfile.Marshal(message)
	if err != nil {
		return Record{}, err
	}
	detail["message"] = inner
	if raw, err = itemfile.Marshal(detail); err != nil {
		return Record{}, err
	}
	return fromDetail(raw)
}

// read returns the JSON value of a cell; nil means none.
func (c csvColumn) read(cell string) (json.RawMessage, error) {
	quotedText, isQuoted := strings.CutPrefix(cell, `'"`)
	switch {
	case cell == "" && (c.json || c.isTime() || c.name == "body_base64"):
		return nil, nil
	case c.json && !json.Valid([]byte(cell)):
		return nil, nixie.Errorf(nixie.CodeInvalid, "the cell is not JSON")
	case c.json:
		return json.RawMessage(cell), nil
	case isQuoted:
		value := json.RawMessage(`"` + quotedText)
		if !json.Valid(value) {
			return nil, nixie.Errorf(nixie.CodeInvalid,
				"the cell begins with an apostrophe and a double quote, and is no JSON string after the apostrophe")
		}
		return value, nil
	}
	return itemfile.Marshal(strings.TrimPrefix(cell, "'"))
}
