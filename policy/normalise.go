package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Placeholders for text that differs from message to message.
const (
	aString   = "<str>"
	aPath     = "<path>"
	aHost     = "<host>" // also its address
	anEmail   = "<email>"
	anID      = "<id>"
	anAddress = "<addr>" // of hardware
	aTime     = "<time>"
	aDuration = "<dur>"
	aSize     = "<size>"
	aHex      = "<hex>"
	aNumber   = "<n>" // also a short hexadecimal number, which may have no letters
)

// normalise reduces a text to the part that failures of one cause have in common. The result is one
// line: the first words, with placeholders for the parts that differ. A run of equal placeholders
// becomes one, so that lists of any length give the same text. It reads each byte a bounded number
// of times.
func normalise(text string) string { return string(appendNormal(nil, text, nil)) }

// appendNormal appends a normalised text to an empty slice, whose memory it uses. Words that are
// values of the body of the message get a placeholder; body may be nil.
func appendNormal(empty []byte, text string, body *fields) []byte {
	n := normaliser{text: text, out: empty, fields: body}
	return n.all()
}

func (n *normaliser) all() []byte {
	for n.at < len(n.text) && !n.full {
		if !n.word() {
			n.next()
		}
	}
	return n.out
}

// word reads a word of letters with the marks that end it, and reports whether there is one. Most
// chunks are such words; this is their fast path.
func (n *normaliser) word() bool {
	letters := n.at
	for letters < len(n.text) && isLatin(n.text[letters]) {
		letters++
	}
	end := letters
	for end < len(n.text) && (n.text[end] == '.' || n.text[end] == ':' || n.text[end] == '-') {
		end++
	}
	if letters == n.at || end < len(n.text) && n.text[end] > ' ' || letters-n.at >= letterID && isRandom(n.text[n.at:letters]) {
		return false
	}
	if _, is := n.isField(); is {
		n.placeholder(aField)
	} else {
		n.literal(n.text[n.at:letters])
	}
	if end > letters {
		n.literal(n.text[letters:end])
	}
	n.at, n.prev = end, rune(n.text[end-1])
	return true
}

type normaliser struct {
	text    string
	at      int  // next byte to read
	prev    rune // the one before it
	fields  *fields
	without uint32 // masks that a measurement leaves out, a bit each

	out   []byte
	gap   bool // there were blanks since the last token
	words int  // in out
	room  int  // bytes that the current word may still take
	full  bool // out has all the words that count

	held     string // the placeholder at the end of out; a comma or colon may follow it
	heldLen  int    // length of out up to it
	heldWord int    // words up to it

	unclosed    []rune // quotes that nothing closes in the rest of the text
	wordRoom    [32]byte
	reasonEnd   int  // where the quote closes of a text that is the error itself
	braces      int  // open ones
	unreachable int8 // whether the text is about a connection that failed: 1 yes, −1 no, 0 unknown
}

// next reads one rune, quoted string or chunk.
func (n *normaliser) next() {
	r, size := utf8.DecodeRuneInString(n.text[n.at:])
	switch {
	case isBlank(r):
		n.gap = true
	case closing(r) != 0 && !isWordRune(n.prev) && (n.at != n.reasonEnd || n.at == 0):
		if end := n.quoted(r, size); end > 0 {
			n.quotation(r, n.at+size, end-utf8.RuneLen(closing(r)), end)
			return
		}
		n.literal(n.text[n.at : n.at+size])
	case isDelimiter(r) || closing(r) != 0:
		n.brace(r)
		n.literal(n.text[n.at : n.at+size])
	default:
		if end, is := n.isField(); is {
			n.placeholder(aField)
			n.at, n.prev = n.at+end, rune(n.text[n.at+end-1])
			return
		}
		end := n.chunkEnd()
		n.chunk(n.text[n.at:end], n.text[end:])
		n.prev, _ = utf8.DecodeLastRuneInString(n.text[:end])
		n.at = end
		return
	}
	n.at, n.prev = n.at+size, r
}

func (n *normaliser) brace(r rune) {
	switch r {
	case '{':
		n.braces++
	case '}':
		n.braces--
	}
}

// quotation writes a quoted text, which lies from begin to shut, and its quotes, which end at end.
func (n *normaliser) quotation(open rune, begin, shut, end int) {
	text := strings.TrimSuffix(n.text[begin:shut], `\`)
	switch {
	case n.isReason():
		n.literal(n.text[n.at:begin])
		n.at, n.prev, n.reasonEnd = begin, ' ', shut
		return
	case n.lacks(maskQuoted), n.isNamed(text, n.text[end:]):
		n.literal(n.text[n.at:end])
	case isConstant(text) && !n.isFieldText(text):
		n.literal(n.text[n.at:end])
	case len(text) > maxChunk || strings.ContainsFunc(text, isBlank) || n.url(text) == 0 && n.server(text) == 0:
		n.placeholder(aString)
	}
	n.at, n.prev = end, open
}

// quoted returns the end of the string that a quote opens here, or 0. It never searches twice for a
// quote that it did not find: that would take quadratic time in a text of opening quotes. An
// escaped quote closes an escaped one.
func (n *normaliser) quoted(open rune, size int) int {
	escaped := n.prev == '\\' // in a text that is quoted itself
	kind := open
	if escaped {
		kind = -open
	}
	if slices.Contains(n.unclosed, kind) {
		return 0
	}
	shut := closing(open)
	var before rune
	for i, r := range n.text[n.at+size:] {
		end := n.at + size + i + utf8.RuneLen(shut)
		if r == shut && (before == '\\') == escaped {
			after, _ := utf8.DecodeRuneInString(n.text[end:])
			if end == len(n.text) || !isWordRune(after) {
				return end
			}
		}
		before = r
	}
	n.unclosed = append(n.unclosed, kind)
	return 0
}

// chunkEnd returns the end of the run of runes that are neither blank nor delimiter. An apostrophe
// within a word belongs to the run, and so does the query of a URL.
func (n *normaliser) chunkEnd() int {
	var before rune
	url := false
	for i, r := range n.text[n.at:] {
		if isBlank(r) || isDelimiter(r) && !(url && strings.ContainsRune("=?&#!*$", r)) {
			return n.at + i
		}
		url = url || r == '/' && strings.HasSuffix(n.text[n.at:n.at+i], ":/")
		if closing(r) != 0 {
			after, _ := utf8.DecodeRuneInString(n.text[n.at+i+utf8.RuneLen(r):])
			if r != '\'' || !isWordRune(before) || !isWordRune(after) {
				return n.at + i
			}
		}
		before = r
	}
	return len(n.text)
}

// maxChunk limits the bytes of a chunk that count: more is data.
const maxChunk = 1 << 10

// chunk writes a chunk or its placeholder. The marks at the end of a sentence belong to neither; a
// colon after a chunk stays.
func (n *normaliser) chunk(c, after string) {
	c = head(c, maxChunk)
	if n.text[n.at] == ':' {
		n.literal(":")
		c = strings.TrimLeft(c, ":")
	}
	core := strings.TrimRight(c, ".:-…")
	rest := c[len(core):]
	whole := false
	for core != "" {
		if n.isCode(core, after) {
			n.literal(core)
			whole = false
			break
		}
		masked := n.masked(core)
		if whole = masked == len(core); masked == 0 {
			n.runs(core)
			break
		}
		core = core[masked:]
		if colons := strings.TrimLeft(core, ":"); len(colons) < len(core) {
			n.literal(":")
			core = colons
		}
	}
	if whole {
		if strings.Contains(rest, ":") {
			rest = ":"
		} else {
			rest = ""
		}
	}
	if rest != "" {
		n.literal(rest)
	}
}

// runs writes a chunk run by run: letters and digits, and the marks between them.
func (n *normaliser) runs(c string) {
	before := byte(' ')
	for len(c) > 0 {
		if len(c) >= 36 && isUUID(c[:36]) {
			n.placeholder(anID)
			c = c[36:]
			continue
		}
		end := runEnd(c)
		if end == 0 {
			_, end = utf8.DecodeRuneInString(c)
			if !isSign(before, c) {
				n.literal(c[:end])
			}
		} else if whole := n.wholeRun(c[:end]); whole != "" {
			n.placeholder(whole)
		} else {
			n.mixed(c[:end])
		}
		before = c[end-1]
		c = c[end:]
	}
}

// isSign reports whether the mark that c begins with is the sign of a number.
func isSign(before byte, c string) bool {
	return len(c) > 1 && (c[0] == '-' || c[0] == '+') && isDigit(rune(c[1])) && !isASCIIWord(before)
}

// mixed writes a run of letters and digits with its numbers replaced.
func (n *normaliser) mixed(run string) {
	for len(run) > 0 {
		end := strings.IndexFunc(run, func(r rune) bool { return isDigit(r) != isDigit(rune(run[0])) })
		if end < 0 {
			end = len(run)
		}
		if isDigit(rune(run[0])) && !n.lacks(maskDigits) {
			n.placeholder(aNumber)
		} else {
			n.literal(run[:end])
		}
		run = run[end:]
	}
}

// literal writes text that is the same for all failures of a cause. A comma or colon does not end a
// list of placeholders.
func (n *normaliser) literal(s string) {
	if s != "," && s != ":" {
		n.held = ""
	}
	n.write(s)
}

// placeholder writes a placeholder, unless it repeats the one before it.
func (n *normaliser) placeholder(s string) {
	if n.held == s {
		n.out, n.words, n.gap = n.out[:n.heldLen], n.heldWord, false
		return
	}
	n.write(s)
	if n.full {
		return
	}
	n.held, n.heldLen, n.heldWord = s, len(n.out), n.words
}

func (n *normaliser) write(s string) {
	if n.gap || n.words == 0 {
		if n.words == signatureWords {
			n.full = true
			return
		}
		if n.words > 0 {
			n.out = append(n.out, ' ')
		}
		n.words++
		n.room = signatureWord
		n.gap = false
	}
	s = head(s, n.room)
	n.room -= len(s)
	n.out = append(n.out, s...)
}

func isBlank(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	return r == utf8.RuneError || !unicode.IsPrint(r) || unicode.IsSpace(r)
}

func isDelimiter(r rune) bool {
	switch r {
	case '=', ',', ';', '(', ')', '[', ']', '{', '}', '<', '>', '|', '!', '?', '*', '&', '#', '$', '^':
		return true
	}
	return false
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// closing returns the quote that ends a string which r opens, or 0.
func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	}
	return 0
}
