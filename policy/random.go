package policy

import (
	"slices"
	"strings"
)

// Lengths from which something counts as an identifier.
const (
	shortHex = 7  // an abbreviated commit
	longHex  = 16 // a hash; a shorter one may well be all digits
	mixedID  = 5  // letters and digits in at least mixedGroups groups, such as x7k2q
	digitID  = 8  // a word with a digit whose letters make no syllables
	letterID = 10 // a word without a digit, of both cases, whose letters make no syllables
	chunkID  = 16 // with dashes and underscores

	mixedGroups = 3
	shortPart   = 4 // letters of a part of a name that are few
)

// follows holds for each letter those that often follow it, in words and in names of programs: 260
// of the 676 pairs, which make up 94 of 100 pairs there and 38 of 100 in random text.
var follows = [26]string{
	0:         "bcdfgiklmnprstuvxy",
	'b' - 'a': "aeilorsuy",
	'c' - 'a': "aceghiklorstuy",
	'd' - 'a': "adeilorsu",
	'e' - 'a': "abcdefgilmnopqrstvwxy",
	'f' - 'a': "aefilorstu",
	'g' - 'a': "aehilnorsu",
	'h' - 'a': "aeiort",
	'i' - 'a': "abcdefglmnoprstvxz",
	'j' - 'a': "aeou",
	'k' - 'a': "eis",
	'l' - 'a': "adeilostuy",
	'm' - 'a': "abeimopsu",
	'n' - 'a': "acdefgiklnostuv",
	'o' - 'a': "abcdfgiklmnoprstuvw",
	'p' - 'a': "aehiloprstuy",
	'q' - 'a': "u",
	'r' - 'a': "acdefgiklmnoprstuvy",
	's' - 'a': "acehiklopstuy",
	't' - 'a': "acehilmoprstuy",
	'u' - 'a': "abcefilmnprst",
	'v' - 'a': "aei",
	'w' - 'a': "aeinor",
	'x' - 'a': "ept",
	'y' - 'a': "npst",
	'z' - 'a': "e",
}

// letters counts what a word consists of. A pair is two neighbours of which one is a letter. It is
// odd if they are a letter and a digit, or letters that seldom follow each other.
type letters struct {
	pairs, odd           int
	digits, upper, lower int
}

// lettersOf counts a word. A capital letter after a small one begins a part of a name, and is odd
// if the part before it is too short for one.
func lettersOf(word string) (c letters) {
	part := 0
	for i := range len(word) {
		b := word[i]
		digit, letter := isDigit(rune(b)), isLatin(b)
		switch {
		case digit:
			c.digits++
		case !letter:
		case b < 'a':
			c.upper++
		default:
			c.lower++
		}
		if i == 0 {
			continue
		}
		before := word[i-1]
		switch {
		case digit && isLatin(before), letter && isDigit(rune(before)):
			c.pairs++
			c.odd++
		case letter && isLatin(before) && before >= 'a' && b < 'a':
			c.pairs++
			if i-part < shortPart {
				c.odd++
			}
			part = i
		case letter && isLatin(before):
			c.pairs++
			if strings.IndexByte(follows[before|0x20-'a'], b|0x20) < 0 {
				c.odd++
			}
		}
	}
	return c
}

// drawn reports whether two of five pairs are odd: then the word was drawn and not spoken.
func (c letters) drawn() bool { return c.odd*5 >= c.pairs*2 }

// isRandom reports whether a word is an identifier: it has a digit or letters of both cases, and
// was drawn.
func isRandom(word string) bool {
	if len(word) < digitID {
		return false
	}
	if last := len(word) - 1; isDigit(rune(word[last])) && isLatin(word[last-1]) {
		word = word[:last] // as in sqlite3
	}
	c := lettersOf(word)
	if c.digits > 0 {
		return c.odd >= 3 && c.drawn()
	}
	return len(word) >= letterID && c.upper > 0 && c.lower > 0 && c.odd >= 4 && c.drawn()
}

// isRandomChunk reports whether a chunk is a random word that has dashes and underscores, such as a
// nanoid. One part that is a word makes it a name with an identifier in it.
func isRandomChunk(c string) bool {
	if len(c) < chunkID || !strings.ContainsAny(c, "-_") || !isRandom(c) {
		return false
	}
	for part := range strings.FieldsFuncSeq(c, func(r rune) bool { return r == '-' || r == '_' }) {
		if strings.ContainsFunc(part, func(r rune) bool { return !isDigit(r) && !isLatinRune(r) }) {
			return false
		}
		l := lettersOf(part)
		plain := l.upper == 0 || l.lower == 0 || l.upper == 1 && part[0] < 'a'
		if len(part) >= shortPart && l.digits == 0 && plain && !l.drawn() {
			return false
		}
	}
	return true
}

// makers lists how known makers of identifiers begin them, with the mark before the random part.
// The beginning stays: it says what the identifier is of.
var makers = []struct {
	marks    string // between the beginning and the rest
	begins   []string
	least    int    // bytes of the rest
	alphabet string // of the rest; "" is letters and digits
}{
	{"_", []string{ // payment services and what copies their form
		"acct", "card", "ch", "cs_live", "cs_test", "cus", "dp", "evt", "fee", "file", "in", "inv", "ord", "payout", "pi", "pk_live",
		"pk_test", "plan", "pm", "po", "price", "prod", "py", "re", "req", "seti", "si", "sk_live", "sk_test", "src", "sub", "tok",
		"tr", "txn", "usr", "we", "whsec", "ghp", "gho", "ghs", "github_pat",
	}, 14, ""},
	{"-", []string{ // machines and networks of a cloud
		"ami", "eipalloc", "eni", "fs", "i", "igw", "lt", "nat", "pcx", "r", "rtb", "sg", "snap", "subnet", "tgw", "vol", "vpc", "vpce",
	}, 8, "0123456789abcdef"},
	{"", []string{"AKIA", "ASIA", "eyJ"}, 16, base64Alphabet + "."},
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// madeBy returns the length of the beginning of an identifier of a known maker, and whether c is
// one.
func madeBy(c string) (begin int, is bool) {
	for _, m := range makers {
		for _, b := range m.begins {
			rest, has := strings.CutPrefix(c, b)
			if !has || !strings.HasPrefix(rest, m.marks) {
				continue
			}
			if rest = rest[len(m.marks):]; len(rest) >= m.least && isDrawn(rest, m.alphabet) {
				return len(b) + len(m.marks), true
			}
		}
	}
	return 0, false
}

// isDrawn reports whether s has letters of an alphabet alone, and a digit or a capital among them.
func isDrawn(s, alphabet string) bool {
	marked := false
	for i := range len(s) {
		b := s[i]
		if alphabet == "" && !isASCIIWord(b) || alphabet != "" && strings.IndexByte(alphabet, b) < 0 {
			return false
		}
		marked = marked || b < 'a'
	}
	return marked
}

// Names of pods end with the hash of their template and a random part, in letters that make no
// words and digits that look like no letter.
const (
	podAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	podRandom   = 5
	podHashMin  = 6
	podHashMax  = 10
)

// podOf returns the length of the name before the parts of a pod that differ, and whether c is the
// name of a pod.
func podOf(c string) (begin int, is bool) {
	dash := strings.LastIndexByte(c, '-')
	if dash <= 0 || len(c)-dash-1 != podRandom || !isDrawnOf(c[dash+1:], podAlphabet) {
		return 0, false
	}
	before := strings.LastIndexByte(c[:dash], '-')
	if hash := c[before+1 : dash]; before > 0 && len(hash) >= podHashMin && len(hash) <= podHashMax && isDrawnOf(hash, podAlphabet) {
		return before + 1, true
	}
	tail := c[dash+1:]
	return dash + 1, strings.ContainsFunc(tail, isLatinRune) && !slices.Contains(programsLikePods, tail)
}

// programsLikePods lists programs and protocols that are written like the random part of a pod.
// These have no vowel either, and "svc-httpd" and "svc-dhcpd" are two services.
var programsLikePods = []string{
	"cntlm", "dhcpd", "dhtml", "grpcs", "httpd", "https", "lxcfs", "mssql", "pgsql", "pptpd", "sctpd", "sftpd", "smtpd", "smtps", "snmpd",
	"tftpd", "vsftp", "xhtml",
}

func isDrawnOf(s, alphabet string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(alphabet, r) })
}

func isASCIIWord(b byte) bool { return isLatin(b) || isDigit(rune(b)) }
