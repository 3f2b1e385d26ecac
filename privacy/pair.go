package privacy

import "strings"

// name is the name before the separator of a pair.
type name struct {
	class  nameClass
	quoted bool // the name itself has quotes
	opener byte // the quote before it, if the string that it opens goes on after the separator
	leads  bool // only marks come before it in its line
}

// pair hides the value after the name of a secret. The scanner is at a colon or an equals sign.
func (s *scanner) pair() bool {
	equals := s.text[s.at] == '='
	before, after := s.byteAt(s.at-1), s.byteAt(s.at+1)
	switch {
	case equals && (after == '=' || before == '=' || before == '!' || before == '<' || before == '>'):
		return false // a comparison
	case !equals && (after == ':' || before == ':'):
		return false // a name space
	}
	n := s.nameBefore(s.at)
	if n.class == harmless {
		return false
	}
	from := s.at + 1
	if equals && after == '>' || !equals && after == '=' {
		from++ // => and :=
		equals = true
	}
	start := s.endOf(from, isBlank)
	if n.quoted && start < len(s.text) && isSpace(s.text[start]) {
		start = s.endOf(start, isSpace)
	}
	if start == len(s.text) {
		return false
	}
	switch {
	case n.class == credentials && s.credentials(n, start), n.class == cookies && s.cookies(n, start):
		return true
	case n.class == weak && (!equals && !n.quoted || strings.IndexByte(`/[{`, s.text[start]) >= 0):
		return false
	}
	v, ok := s.value(start)
	if !ok || !s.isSecret(n, v, equals, start > from) {
		return false
	}
	return s.hide(v.from, v.to)
}

// nameBefore reads the name that ends at a separator. Two words with a blank
// between them, such as API key, are read as one name.
func (s *scanner) nameBefore(at int) name {
	var n name
	end := s.startOf(at, maxNameLength, isBlank)
	if b := s.byteAt(end - 1); b == ']' {
		end--
	}
	if isQuote(s.byteAt(end - 1)) {
		n.quoted = true
		end = s.startOf(end-1, maxNameLength, func(b byte) bool { return b == '\\' })
	}
	start := s.startOf(end, maxNameLength, isName)
	if start == end {
		return n
	}
	n.class = classify(s.text[start:end])
	if first := s.startOf(start-1, maxNameLength, isName); s.byteAt(start-1) == ' ' && first < start-1 {
		if n.class == harmless {
			n.class = classify(s.text[first:end])
			start = first
		} else if unexpected(s.text[first : start-1]) {
			n.class = harmless // the error of a parser about one of its tokens
		}
	}
	if b := s.byteAt(start - 1); !n.quoted && isQuote(b) {
		n.opener = b
	}
	n.leads = s.leads(start)
	return n
}

func unexpected(word string) bool {
	switch strings.ToLower(word) {
	case "unexpected", "expected", "illegal", "stray":
		return true
	}
	return false
}

// leads reports whether a name is the first of its line, or of its entry in a list or map.
func (s *scanner) leads(start int) bool {
	start = s.startOf(start, maxNameLength, func(b byte) bool {
		return isBlank(b) || b == '-' || b == '*' || b == '>' || b == '<' || b == '#'
	})
	switch s.byteAt(start - 1) {
	case 0, '\n', '\r', '{', '[', '(', ',', ';', '|', '"', '\'':
		return true
	case 'n':
		return s.byteAt(start-2) == '\\'
	}
	return false
}

// isSecret decides whether the value after the name of a secret is one.
func (s *scanner) isSecret(n name, v value, equals, spaced bool) bool {
	text := s.text[v.from:v.to]
	switch {
	case harmlessValue(text):
		return false
	case n.class == weak:
		return !numeric(text) && strings.IndexByte(text[:min(len(text), 3)], '\\') < 0 && text[0] != '/'
	case equals, v.quoted, n.quoted, !spaced:
		return !stateWord(text)
	}
	// After a colon and a blank there may be a value, or the rest of a sentence.
	end := s.byteAt(v.to)
	switch {
	case end == ':' || end == '(' || strings.Contains(text, "://"):
		return false
	case strings.Contains(text, Hidden):
		return true
	case !n.leads:
		return len(text) >= MinValue && random(text)
	case s.lineGoesOn(v.to) && !s.listGoesOn(v.to):
		return !small(text)
	}
	return !stateWord(text)
}

// lineGoesOn reports whether there is more than blanks before the end of the line.
func (s *scanner) lineGoesOn(at int) bool {
	at = s.endOf(at, isBlank)
	return at < len(s.text) && !isSpace(s.text[at])
}

// listGoesOn reports whether a list of names and values ends here, or has its next name: no
// sentence goes on so.
func (s *scanner) listGoesOn(at int) bool {
	switch s.byteAt(at) {
	case '}', ']', ')':
		return true
	case ',', ';':
		from := s.endOf(at+1, isBlank)
		to := s.endOf(from, isName)
		return to > from && (s.byteAt(to) == ':' || s.byteAt(to) == '=')
	}
	return false
}

// small reports whether text is a word in small letters, or one that begins a
// sentence.
func small(text string) bool {
	for i := range len(text) {
		if b := text[i]; (b < 'a' || b > 'z') && (i > 0 || b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}

// numeric reports whether text is a plain number.
func numeric(text string) bool {
	whole, fraction, _ := strings.Cut(text, ".")
	return whole != "" && strings.Trim(whole+fraction, "0123456789") == ""
}

// credentials hides the credentials after the scheme in an Authorization header: one word, or for a
// scheme with parameters the rest of the header.
func (s *scanner) credentials(n name, start int) bool {
	first := s.insideHeader(start)
	scheme := s.endOf(first, isName)
	from := s.endOf(scheme, isBlank)
	if from == scheme {
		return false
	}
	switch strings.ToLower(s.text[first:min(scheme, first+maxNameLength)]) {
	case "bearer", "basic", "token", "apikey", "negotiate", "ntlm", "bot", "key":
		to := s.endOf(from, func(b byte) bool { return isCredential(b) || b == '*' })
		if small(s.text[from:to]) && s.lineGoesOn(to) {
			return false // Authorization: token has expired
		}
		return s.hide(from, to)
	case "digest", "aws4-hmac-sha256", "hawk", "oauth", "sharedkey", "sharedkeylite", "signature", "hmac":
		return s.hide(from, s.endOfHeader(n, start))
	}
	return false
}

// cookies hides all pairs of a Cookie header.
func (s *scanner) cookies(n name, start int) bool {
	first := s.insideHeader(start)
	if s.byteAt(s.endOf(first, isName)) != '=' {
		return false
	}
	return s.hide(first, s.endOfHeader(n, start))
}

// insideHeader skips quotes and brackets before the value of a header.
func (s *scanner) insideHeader(start int) int {
	return s.endOf(start, func(b byte) bool { return isQuote(b) || b == '[' || b == '\\' })
}

// endOfHeader returns the end of the value of a header. It ends at the quote that closes the header
// or its value, at the bracket of a list, or with the line.
func (s *scanner) endOfHeader(n name, start int) int {
	if v, ok := s.quoted(start); ok {
		return v.to
	}
	line := s.text[start:s.endOfLine(start)]
	end := ""
	switch {
	case s.text[start] == '[':
		end = "]"
	case n.opener != 0:
		end = string(n.opener)
	default:
		end = `\n`
	}
	if cut := strings.Index(line, end); cut >= 0 {
		line = line[:cut]
	}
	return start + len(strings.TrimRight(line, " \t"))
}
