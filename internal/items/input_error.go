package items

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// InputError reports an error of a list with its position.
type InputError struct {
	List    string // path of the list, or "standard input"
	Line    int    // the first is 1; 0 means no position
	Column  int    // counted in bytes; the first is 1
	Code    nixie.Code
	Text    string // one sentence with the fix
	excerpt string // the text around the position and a caret, escaped
}

// Error returns list:line:column and the text, often with the text around the position and a caret.
// It escapes foreign text.
func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString(visible([]byte(e.List)))
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	b.WriteString(e.Text)
	b.WriteString(e.excerpt)
	return b.String()
}

// Unwrap makes nixie.CodeOf answer Code.
func (e *InputError) Unwrap() error { return &nixie.Error{Code: e.Code, Text: e.Text} }

// excerptBytes limits the bytes of a line that an error shows on each side of the position.
const excerptBytes = 40

// excerpt shows the text around byte at of line with a caret under it.
func excerpt(line []byte, at int) string {
	at = min(at, len(line))
	from, to := max(0, at-excerptBytes), min(len(line), at+excerptBytes)
	for from > 0 && from < at && !utf8.RuneStart(line[from]) {
		from++
	}
	before, after := visible(line[from:at]), visible(line[at:to])
	if from > 0 {
		before = "…" + before
	}
	if to < len(line) {
		after += "…"
	}
	return "\n  " + before + after + "\n  " + strings.Repeat(" ", utf8.RuneCountInString(before)) + "^"
}

// visible escapes all but printable characters.
func visible(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// unreadable makes the error of a file that cannot be read.
func unreadable(name string, err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return nixie.Errorf(nixie.CodeUnavailable, "%s cannot be read: %w", visible([]byte(name)), err)
}

func tooLarge(size int64, limit int) string {
	return fmt.Sprintf("the item has %d bytes, the limit is %d: store it elsewhere and list a reference to it", size, limit)
}

// checkUTF8 returns an error at the first byte that is not UTF-8, for an item that begins at line
// and column.
func checkUTF8(list string, body []byte, line, column int) *InputError {
	if utf8.Valid(body) {
		return nil
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	begin := bytes.LastIndexByte(body[:at], '\n') + 1
	if begin > 0 {
		line, column = line+bytes.Count(body[:at], []byte{'\n'}), 1
	}
	end := len(body)
	if n := bytes.IndexByte(body[at:], '\n'); n >= 0 {
		end = at + n
	}
	return &InputError{List: list, Line: line, Column: column + at - begin, Code: nixie.CodeInvalid,
		Text: fmt.Sprintf("byte 0x%02x is not valid UTF-8, which JSON and CSV must be: "+
			"convert the list, with iconv for example", body[at]),
		excerpt: excerpt(body[begin:end], at-begin)}
}
