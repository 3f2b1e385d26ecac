package privacy

import "strings"

// value is the range of a value in the text.
type value struct {
	from, to int
	quoted   bool
}

// value reads the value that begins at start.
func (s *scanner) value(start int) (value, bool) {
	switch b := s.text[start]; {
	case b == '[':
		return s.listed(start)
	case b == '{':
		return value{}, false // the scanner reads its pairs
	case b == '|' || b == '>':
		return s.block(start)
	case strings.IndexByte("bBuUrRfF", b) >= 0 && isQuote(s.byteAt(start+1)):
		start++
	}
	if v, ok := s.quoted(start); ok {
		return v, v.from < v.to
	}
	return s.unquoted(start)
}

// quoted reads a string in quotes, which may be escaped, as in JSON within JSON. A string without
// an end ends with its line.
func (s *scanner) quoted(start int) (value, bool) {
	open := s.endOf(start, func(b byte) bool { return b == '\\' })
	if !isQuote(s.byteAt(open)) {
		return value{}, false
	}
	closer := s.text[start : open+1]
	last := closer[len(closer)-1]
	for i := open + 1; i < len(s.text); {
		n := strings.IndexByte(s.text[i:], last)
		if n < 0 || last == '\'' && strings.IndexByte(s.text[i:i+n], '\n') >= 0 {
			break // probably an apostrophe: strings in single quotes end with their line
		}
		i += n
		escapes := i - s.startOf(i, i-open-1, func(b byte) bool { return b == '\\' })
		doubled := s.byteAt(i+1) == closer[0] && len(closer) == 1 && i > open+1
		switch {
		case doubled:
			i += 2 // as SQL writes a quote
		case escapes == len(closer)-1 || len(closer) == 1 && escapes%2 == 0:
			return value{open + 1, i - (len(closer) - 1), true}, true
		default:
			i++
		}
	}
	return value{open + 1, s.endOfLine(open), true}, true
}

// listed reads a value in brackets.
func (s *scanner) listed(start int) (value, bool) {
	end := len(s.text)
	if n := strings.IndexAny(s.text[start:], "]\n"); n >= 0 {
		end = start + n
	}
	v := value{start + 1, end, true}
	if inner, ok := s.quoted(v.from); ok && inner.to < end {
		v.from = inner.from
		v.to = s.startOf(end, end-v.from, func(b byte) bool { return isQuote(b) || b == '\\' })
	}
	return v, v.from < v.to
}

// block reads the indented lines after a | or > of YAML.
func (s *scanner) block(start int) (value, bool) {
	line := s.endOf(start, func(b byte) bool { return strings.IndexByte("|>+-", b) >= 0 })
	if line-start > 2 || s.byteAt(line) != '\n' || !isBlank(s.byteAt(line+1)) {
		return value{}, false
	}
	from := s.endOf(line+1, isBlank)
	to := s.endOfLine(from)
	for s.byteAt(to) == '\n' && isBlank(s.byteAt(to+1)) {
		to = s.endOfLine(to + 1)
	}
	return value{from, to, true}, from < to
}

// unquoted reads a value without quotes: up to a blank, or a mark that ends it. Marks that close a
// bracket or a sentence at its end are not part of it.
func (s *scanner) unquoted(start int) (value, bool) {
	end := start
	for end < len(s.text) && !s.endsUnquoted(end) {
		end++
	}
	for end > start && strings.IndexByte(")]}>.,;:!?", s.text[end-1]) >= 0 && !harmlessValue(s.text[start:end]) {
		end--
	}
	return value{start, end, false}, start < end
}

// endsUnquoted reports whether a value without quotes ends at i.
func (s *scanner) endsUnquoted(i int) bool {
	b, next := s.text[i], s.byteAt(i+1)
	switch {
	case b <= ' ' || b == 0x7f:
		return true
	case b == '\\':
		return next == '"' || next == '\'' || next == 'n' || next == 'r' || next == 't'
	case isQuote(b):
		return !isWord(next)
	case b == ',' || b == ';' || b == '&' || b == '|':
		return next <= ' ' || isQuote(next) || s.pairFollows(i+1)
	}
	return false
}

// pairFollows reports whether a name and a separator begin at i.
func (s *scanner) pairFollows(i int) bool {
	end := i
	for end < len(s.text) && end < i+maxNameLength && isName(s.text[end]) {
		end++
	}
	b := s.byteAt(end)
	return end > i && (b == '=' || b == ':')
}
