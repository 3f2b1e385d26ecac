package privacy

import "strings"

// passes limits how often Secrets reads a text.
const passes = 4

// Secrets hides the secrets that it recognises by name, form or prefix; see the comment of the
// package. It reads each byte a bounded number of times, and returns a text without secrets as it
// is. Hiding a secret can reveal another one next to it, so Secrets reads a text again until it
// finds none. So hiding twice changes nothing.
func Secrets(text string) string {
	for range passes {
		s := scanner{text: text}
		for s.at < len(text) {
			s.next()
		}
		if s.out == nil {
			break
		}
		text = string(append(s.out, text[s.kept:]...))
	}
	return text
}

// scanner reads a text once. Its methods look for a secret that begins at the offset at, or has its
// middle there. They hide it and move the offset behind it, or return false.
type scanner struct {
	text string
	at   int
	out  []byte // the masked text up to kept; nil: nothing is hidden yet
	kept int
	done int // the end of the last secret, hidden by this scanner or before
}

// next looks for a secret at one offset.
func (s *scanner) next() {
	b := s.text[s.at]
	switch {
	case isWord(b):
		if !s.word() {
			s.at = s.endOf(s.at, isWord)
		}
		return
	case b == '\\' && strings.IndexByte("ntr", s.byteAt(s.at+1)) >= 0:
		s.at += 2 // the letter of an escape begins no word
		return
	case b == ':' && strings.HasPrefix(s.rest(), "://"):
		if s.url() {
			return
		}
	case b == ':' || b == '=':
		if s.pair() {
			return
		}
	case b == '-':
		if s.dash() {
			return
		}
		s.at = s.endOf(s.at, func(b byte) bool { return b == '-' })
		return
	case b == '@':
		s.driverName()
	case b == ' ':
		if s.quotedAfterPassword() {
			return
		}
	}
	s.at++
}

func (s *scanner) rest() string { return s.text[s.at:] }

// hide replaces a range of the text and moves the offset behind it, never back.
func (s *scanner) hide(from, to int) bool {
	from = max(from, s.done)
	if from >= to {
		return false
	}
	s.done = to
	if s.text[from:to] != Hidden {
		s.out = append(append(s.out, s.text[s.kept:from]...), Hidden...)
		s.kept = to
	}
	s.at = max(s.at, to)
	return true
}

// endOf returns the end of the run of bytes that begins at from.
func (s *scanner) endOf(from int, belongs func(byte) bool) int {
	for from < len(s.text) && belongs(s.text[from]) {
		from++
	}
	return from
}

// startOf returns the beginning of the run of bytes that ends before to, at most limit bytes.
func (s *scanner) startOf(to, limit int, belongs func(byte) bool) int {
	least := max(0, to-limit)
	for to > least && belongs(s.text[to-1]) {
		to--
	}
	return to
}

// endOfLine returns the end of the line that has from.
func (s *scanner) endOfLine(from int) int {
	if n := strings.IndexAny(s.text[from:], "\r\n"); n >= 0 {
		return from + n
	}
	return len(s.text)
}

// byteAt returns 0 outside of the text.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

// word looks for tokens and credentials that begin at a word.
func (s *scanner) word() bool {
	switch s.text[s.at] | 0x20 {
	case 'b':
		if s.scheme("bearer") || s.scheme("basic") {
			return true
		}
	case 'e':
		if s.webToken() {
			return true
		}
	case 'i':
		if s.identifiedBy() {
			return true
		}
	}
	return s.token()
}

const minCredential = 8 // bytes of what follows Bearer or Basic

// scheme hides the credential after a scheme of HTTP, also outside of a header.
func (s *scanner) scheme(name string) bool {
	from := s.at + len(name)
	if from >= len(s.text) || !isBlank(s.text[from]) || !strings.EqualFold(s.text[s.at:from], name) {
		return false
	}
	from = s.endOf(from, isBlank)
	to := s.endOf(from, isCredential)
	if to-from < minCredential || !random(s.text[from:to]) && !strings.HasSuffix(s.text[from:to], "=") {
		return false
	}
	return s.hide(from, to)
}

func isCredential(b byte) bool { return isName(b) || b == '+' || b == '/' || b == '=' || b == '~' }

// identifiedBy hides the password of a CREATE USER.
func (s *scanner) identifiedBy() bool {
	const words = "identified by "
	from := s.at + len(words)
	if from >= len(s.text) || !isQuote(s.text[from]) || !strings.EqualFold(s.text[s.at:from], words) {
		return false
	}
	v, ok := s.quoted(from)
	return ok && s.hide(v.from, v.to)
}

// quotedAfterPassword hides 'x' in password 'x'.
func (s *scanner) quotedAfterPassword() bool {
	if s.byteAt(s.at-1)|0x20 != 'd' {
		return false
	}
	from := s.endOf(s.at, isBlank)
	if !isQuote(s.byteAt(from)) {
		return false
	}
	name := s.text[s.startOf(s.at, maxNameLength, isName):s.at]
	if n := len(name); n < len("password") || !strings.EqualFold(name[n-len("password"):], "password") {
		return false
	}
	v, ok := s.quoted(from)
	return ok && s.hide(v.from, v.to)
}
