package items

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/nixie-go/nixie"
)

// lineReader cuts a list at its line ends.
type lineReader struct {
	list  string
	from  *bufio.Reader
	end   byte // \n, or \r in a list that an old program wrote
	line  int  // number of the last line that next returned
	limit int  // of an item's bytes
	buf   []byte
}

func newLineReader(list string, from io.Reader) *lineReader {
	return &lineReader{list: list, end: '\n', limit: nixie.MaxBody, from: bufio.NewReaderSize(from, scanBuffer)}
}

// next returns the next line with its end, valid up to the next call, and its size. It cuts a line
// that is larger than an item may be.
func (l *lineReader) next() (text []byte, size int64, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.from.ReadSlice(l.end)
		size += int64(len(part))
		switch {
		case err == nil && size == int64(len(part)): // the usual case
			l.line++
			return part, size, nil
		case err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, unreadable(l.list, err)
		}
		most := l.limit + len("\r\n")
		l.buf = append(withRoom(l.buf, len(part), most), part[:min(len(part), most-len(l.buf))]...)
		if err == io.EOF && size == 0 {
			return nil, 0, io.EOF
		}
		if err == nil || err == io.EOF {
			l.line++
			return l.buf, size, nil
		}
	}
}

// withRoom returns a buffer that has room for n more bytes, or for most bytes in all. One that
// becomes large takes all its room at once: memory that is never written costs nothing, and a
// buffer that doubles is there twice while it is copied.
func withRoom(buf []byte, n, most int) []byte {
	if cap(buf)-len(buf) >= n || cap(buf) >= most {
		return buf
	}
	room := most
	if need := max(2*cap(buf), len(buf)+n); need <= largeBuffer {
		room = need
	}
	return append(make([]byte, 0, room), buf...)
}

// largeBuffer is the size in bytes beyond which a buffer takes all its room at once.
const largeBuffer = 4 << 20

// trim removes the line end.
func (l *lineReader) trim(text []byte) []byte {
	if l.end == '\r' {
		return bytes.TrimSuffix(text, []byte("\r"))
	}
	return withoutEnd(text)
}

// withoutEnd removes \n or \r\n.
func withoutEnd(text []byte) []byte {
	if body, ok := bytes.CutSuffix(text, []byte("\n")); ok {
		return bytes.TrimSuffix(body, []byte("\r"))
	}
	return text
}

// lineParser makes an item of each line that is not empty.
type lineParser struct {
	lines *lineReader
	json  bool
	scan  scanner
}

func (p *lineParser) next() (found, error) {
	for {
		text, size, err := p.lines.next()
		if err != nil {
			return found{}, err
		}
		line := p.lines.trim(text)
		if len(line) == 0 || p.json && len(bytes.TrimLeft(line, " \t\r")) == 0 {
			continue
		}
		f := found{body: line, raw: line, line: p.lines.line, column: 1, size: size - int64(len(text)-len(line))}
		if size > int64(len(text)) { // cut: the end was not seen
			f.raw = line[:p.lines.limit]
			return f, nil
		}
		f.raw = line[:min(len(line), p.lines.limit)]
		if p.json && f.size <= int64(p.lines.limit) {
			f.bad, err = p.check(line)
		}
		return f, err
	}
}

// check returns an error unless the line is one JSON value.
func (p *lineParser) check(line []byte) (*InputError, error) {
	s := &p.scan
	s.list = p.lines.list
	s.scanBytes(line, p.lines.line)
	s.space()
	err := s.value()
	if err == nil {
		s.space()
		if s.pos == len(line) {
			return nil, nil
		}
		err = s.fail("text after the JSON value: in JSON lines each line holds one value; say --format json if the list is one document")
	}
	var bad *InputError
	if errors.As(err, &bad) {
		return bad, nil
	}
	return nil, err
}
