package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Error says what is wrong with the text of a filter, and where.
type Error struct {
	Text    string // as given
	Column  int    // in characters (runes), the first is 1
	Message string
}

// around is the number of characters printed on each side of a fault.
const around = 60

func errorf(text string, at int, format string, args ...any) error {
	var message strings.Builder
	for rest := fmt.Sprintf(format, args...); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		writeVisible(&message, r, rest[:size])
		rest = rest[size:]
	}
	return &Error{text, utf8.RuneCountInString(text[:at]) + 1, message.String()}
}

// Error returns the message, the text near the fault and a caret under it. Control characters
// and bytes that are not UTF-8 are escaped.
func (e *Error) Error() string {
	var line strings.Builder
	caret, column := 0, 0
	for rest := e.Text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		column++
		if column == e.Column {
			caret = utf8.RuneCountInString(line.String())
		}
		switch {
		case column == e.Column-around-1 || column == e.Column+around:
			line.WriteString("…")
		case column > e.Column-around-1 && column < e.Column+around:
			writeVisible(&line, r, rest[:size])
		}
		rest = rest[size:]
	}
	if e.Column > column { // at the end of the text
		caret = utf8.RuneCountInString(line.String())
	}
	return fmt.Sprintf("filter, column %d: %s\n  %s\n  %s^", e.Column, e.Message, line.String(), strings.Repeat(" ", caret))
}

// writeVisible writes r so that a terminal shows it and does nothing else.
func writeVisible(to *strings.Builder, r rune, raw string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(to, `\x%02x`, raw[0])
	case unicode.IsPrint(r):
		to.WriteRune(r)
	case r < 0x100:
		fmt.Fprintf(to, `\x%02x`, r)
	default:
		fmt.Fprintf(to, `\u%04x`, r)
	}
}

// Unwrap makes [nixie.CodeOf] answer [nixie.CodeInvalid].
func (e *Error) Unwrap() error { return &nixie.Error{Code: nixie.CodeInvalid, Text: e.Message} }

// clip shortens s to at most n bytes for use inside an error text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
