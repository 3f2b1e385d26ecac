package items

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// MaxDepth limits the nesting of arrays and objects in a JSON document.
const MaxDepth = 10_000

// scanBuffer is the first size of the window on a document, in bytes.
const scanBuffer = 256 << 10

// scanner reads JSON (RFC 8259) strictly and makes no values of it. It reads a stream through a
// window, or a complete byte slice.
type scanner struct {
	list string
	from io.Reader // nil: buf has the whole text
	buf  []byte
	pos  int   // in buf, of the next byte
	base int64 // offset of buf[0]

	line      int   // that pos is in
	lineStart int64 // offset of its first byte
	depth     int

	limit   int  // of the bytes kept of a value
	keeping bool // buf keeps the bytes from kept on; false after a value is too large
	kept    int
	cut     []byte // the first limit bytes of a value that is too large
	err     error  // of from
}

// scanBytes starts again on text, a whole line of the list.
func (s *scanner) scanBytes(text []byte, line int) {
	*s = scanner{list: s.list, buf: text, line: line}
}

// more reads more bytes into buf; it returns false at the end or after an error.
func (s *scanner) more() bool {
	if s.from == nil || s.err != nil {
		return false
	}
	low := max(0, s.pos-excerptBytes) // for an excerpt
	window := s.buf[:0]
	if s.keeping && s.pos-s.kept > s.limit {
		s.keeping, s.cut = false, s.buf[s.kept:s.kept+s.limit]
		window = make([]byte, 0, scanBuffer) // the old one is that of cut
	} else if s.keeping {
		low = min(low, s.kept)
	}
	if low > 0 {
		s.buf = append(window, s.buf[low:]...)
		s.pos, s.base, s.kept = s.pos-low, s.base+int64(low), s.kept-low
	}
	if len(s.buf) == cap(s.buf) {
		s.buf = withRoom(s.buf, scanBuffer, max(s.limit+2*scanBuffer, 2*cap(s.buf)))
	}
	for {
		n, err := s.from.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.err = s.buf[:len(s.buf)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
}

// peek returns the next byte, and false at the end.
func (s *scanner) peek() (byte, bool) {
	if s.pos < len(s.buf) || s.more() {
		return s.buf[s.pos], true
	}
	return 0, false
}

func (s *scanner) space() {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch s.buf[s.pos] {
			case '\n':
				s.line++
				s.lineStart = s.base + int64(s.pos) + 1
			case ' ', '\t', '\r':
			default:
				return
			}
		}
		if !s.more() {
			return
		}
	}
}

// column returns the column of the next byte.
func (s *scanner) column() int { return int(s.base + int64(s.pos) - s.lineStart + 1) }

// fail makes an error at the next byte.
func (s *scanner) fail(format string, args ...any) error {
	if s.err != nil && s.err != io.EOF && s.pos == len(s.buf) {
		return unreadable(s.list, s.err)
	}
	begin := max(0, int(s.lineStart-s.base))
	end := len(s.buf)
	if n := bytes.IndexByte(s.buf[s.pos:], '\n'); n >= 0 {
		end = s.pos + n
	}
	return &InputError{List: s.list, Line: s.line, Column: s.column(), Code: nixie.CodeInvalid,
		Text: fmt.Sprintf(format, args...), excerpt: excerpt(bytes.TrimRight(s.buf[begin:end], "\r"), s.pos-begin)}
}

// unexpected makes an error that names the wanted and the found text.
func (s *scanner) unexpected(want string) error {
	if _, ok := s.peek(); !ok {
		return s.fail("invalid JSON: want %s, but the text ends", want)
	}
	_, size := utf8.DecodeRune(s.buf[s.pos:])
	return s.fail("invalid JSON: want %s, found '%s'", want, visible(s.buf[s.pos:s.pos+size]))
}

// value reads past the value that begins with the next byte.
func (s *scanner) value() error {
	c, _ := s.peek()
	switch {
	case c == '"':
		return s.str()
	case c == '{':
		return s.members(nil)
	case c == '[':
		return s.elements(nil)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.unexpected("a value")
}

// members reads past an object. It calls each, unless it is nil, before every value with the name
// as written; each must read past the value. The name is valid only when from is nil.
func (s *scanner) members(each func(name []byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		end, err := s.separator('}', first)
		if end || err != nil {
			s.depth--
			return err
		}
		if c, _ := s.peek(); c != '"' {
			return s.unexpected("a name in double quotes")
		}
		from := s.pos
		if err := s.str(); err != nil {
			return err
		}
		name := s.buf[min(from, s.pos):s.pos]
		if err := s.colon(); err != nil {
			return err
		}
		if each == nil {
			err = s.value()
		} else {
			err = each(name)
		}
		if err != nil {
			return err
		}
	}
}

// colon reads past the colon between a name and its value.
func (s *scanner) colon() error {
	s.space()
	if c, _ := s.peek(); c != ':' {
		return s.unexpected("a colon after the name")
	}
	s.pos++
	s.space()
	return nil
}

// elements reads past an array; it calls each before every element, as members does.
func (s *scanner) elements(each func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		end, err := s.separator(']', first)
		if end || err != nil {
			s.depth--
			return err
		}
		if each == nil {
			err = s.value()
		} else {
			err = each()
		}
		if err != nil {
			return err
		}
	}
}

// enter reads past an opening bracket.
func (s *scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail("arrays and objects nest deeper than %d, the limit: flatten the item", MaxDepth)
	}
	s.pos++
	return nil
}

// separator reads past the comma before an element or member. It returns true after it has read
// past the closing bracket.
func (s *scanner) separator(closing byte, first bool) (end bool, err error) {
	s.space()
	c, _ := s.peek()
	if c == closing {
		s.pos++
		return true, nil
	}
	if first {
		return false, nil
	}
	if c != ',' {
		return false, s.unexpected(fmt.Sprintf("a comma or %c", closing))
	}
	s.pos++
	s.space()
	return false, nil
}

func (s *scanner) str() error {
	for s.pos++; ; {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; {
			case c == '"':
				s.pos++
				return nil
			case c == '\\':
				if err := s.escape(); err != nil {
					return err
				}
			case c < ' ':
				return s.fail("invalid JSON: a control character (0x%02x) inside a string: escape it, or close the string", c)
			default:
				s.pos++
			}
		}
		if !s.more() {
			return s.fail("invalid JSON: the text ends inside a string")
		}
	}
}

func (s *scanner) escape() error {
	s.pos++
	c, _ := s.peek()
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			c, _ := s.peek()
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return s.unexpected("four hex digits after \\u")
			}
			s.pos++
		}
		return nil
	}
	return s.unexpected(`one of "\/bfnrtu after a backslash`)
}

func (s *scanner) number() error {
	if c, _ := s.peek(); c == '-' {
		s.pos++
	}
	if c, _ := s.peek(); c == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if c, _ := s.peek(); c == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c, _ := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c, _ := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) digits() error {
	if c, _ := s.peek(); c < '0' || c > '9' {
		return s.unexpected("a digit")
	}
	for c := byte('0'); c >= '0' && c <= '9'; c, _ = s.peek() {
		s.pos++
	}
	return nil
}

func (s *scanner) word(word string) error {
	for i := range len(word) {
		if c, _ := s.peek(); c != word[i] {
			return s.unexpected("the word " + word)
		}
		s.pos++
	}
	return nil
}
