package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maskKind is a kind of words that differ from message to message.
type maskKind int

// The masks of chunks, in the order in which they are tried.
const (
	maskURL maskKind = iota
	maskUUID
	maskTime
	maskHost
	maskServer
	maskNumber
	maskPath
	maskEmail
	maskAddress
	maskMaker
	maskPod
	maskRandom
	chunkMasks
)

// The other masks: of quoted strings, and of runs of letters and digits.
const (
	maskQuoted = chunkMasks + iota
	maskHex
	maskQuantity
	maskWord
	maskDigits
	allMasks
)

// marks are the kinds of characters that a chunk has.
type marks uint8

const (
	aDigit marks = 1 << iota
	aDot
	aSlash // or a backslash
	aColon
	aDash // or an underscore
	anAt
	aLongWord // of letterID characters or more
)

// needed says which of the marks a chunk has all to have for a mask.
var needed = [chunkMasks]marks{
	maskURL: aSlash | aColon, maskUUID: aDash, maskTime: aDigit, maskHost: aDot, maskServer: aColon | aDigit, maskNumber: aDigit,
	maskPath: aSlash, maskEmail: anAt | aDot, maskAddress: aColon, maskMaker: aLongWord, maskPod: aDash, maskRandom: aDash | aLongWord,
}

func marksOfChunk(c string) (has marks) {
	if len(c) >= letterID {
		has = aLongWord
	}
	for i := range len(c) {
		switch b := c[i]; {
		case isLatin(b):
		case isDigit(rune(b)):
			has |= aDigit
		case b == '.':
			has |= aDot
		case b == '/' || b == '\\':
			has |= aSlash
		case b == ':':
			has |= aColon
		case b == '-' || b == '_':
			has |= aDash
		case b == '@':
			has |= anAt
		}
	}
	return has
}

// masked writes the placeholder of the beginning of a chunk. It returns how much that is, or 0.
func (n *normaliser) masked(c string) int {
	has := marksOfChunk(c)
	if has == 0 {
		return 0
	}
	for kind := range chunkMasks {
		if needed[kind]&^has != 0 || n.lacks(kind) {
			continue
		}
		if used := n.mask(kind, c); used > 0 {
			return used
		}
	}
	return 0
}

// lacks reports whether a measurement leaves a mask out.
func (n *normaliser) lacks(kind maskKind) bool { return n.without&(1<<kind) != 0 }

// mask is masked for one kind.
func (n *normaliser) mask(kind maskKind, c string) int {
	placeholder, is := "", false
	switch kind {
	case maskURL:
		return n.url(c)
	case maskHost:
		return n.host(c)
	case maskServer:
		return n.server(c)
	case maskMaker:
		return n.named(c, madeBy)
	case maskPod:
		return n.named(c, podOf)
	case maskUUID:
		placeholder, is = anID, len(c) == 36 && isUUID(c) // before numbers: it may be all digits
	case maskTime:
		placeholder, is = aTime, isTime(c)
	case maskNumber:
		placeholder, is = aNumber, isNumber(c)
	case maskPath:
		placeholder, is = aPath, isPath(c)
	case maskEmail:
		placeholder, is = anEmail, isEmail(c)
	case maskAddress:
		placeholder = address(c)
		is = placeholder != ""
	case maskRandom:
		placeholder, is = anID, isRandomChunk(c)
	}
	if !is {
		return 0
	}
	n.placeholder(placeholder)
	return len(c)
}

// named writes a name and the placeholder of the identifier after it.
func (n *normaliser) named(c string, find func(string) (int, bool)) int {
	begin, is := find(c)
	if !is {
		return 0
	}
	n.runs(c[:begin])
	n.placeholder(anID)
	return len(c)
}

// wholeRun returns the placeholder of a run of letters and digits, or "".
func (n *normaliser) wholeRun(run string) string {
	digits, groups, letters, hex := 0, 0, 0, true // groups of digits, and of letters
	for i := range len(run) {
		if b := run[i]; isDigit(rune(b)) {
			digits++
			if i == 0 || !isDigit(rune(run[i-1])) {
				groups++
			}
		} else if b != '.' {
			hex = hex && isHexDigit(b)
			if i == 0 || isDigit(rune(run[i-1])) {
				letters++
			}
		}
	}
	switch {
	case digits > 0 && isNumber(run) && !n.lacks(maskNumber):
		return aNumber
	case digits > 0 && !n.lacks(maskHex) && (isHexNumber(run) || hex && len(run) >= longHex):
		return aHex
	case digits > 0 && !n.lacks(maskHex) && hex && len(run) >= shortHex:
		return aNumber
	}
	if kind := quantity(run); kind != "" && !n.lacks(maskQuantity) {
		return kind
	}
	mixed := len(run) >= mixedID && letters > 0 && groups > 0 && groups+letters >= mixedGroups
	if (mixed || isRandom(run)) && !n.lacks(maskWord) {
		return anID
	}
	return ""
}

// quantity returns the placeholder of a duration such as 1m30s or a size such as 4KiB, or "".
func quantity(run string) string {
	kind := ""
	for len(run) > 0 {
		digits := strings.IndexFunc(run, func(r rune) bool { return !isDigit(r) && r != '.' })
		if digits <= 0 {
			return ""
		}
		run = run[digits:]
		letters := strings.IndexFunc(run, isDigit)
		if letters < 0 {
			letters = len(run)
		}
		switch unit := run[:letters]; unit {
		case "ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "m", "min", "mins", "h", "d":
			kind = aDuration
		case "B", "KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB":
			kind = aSize
		default:
			return ""
		}
		run = run[letters:]
	}
	return kind
}

// runEnd returns the end of the run of letters and digits that c begins with. If the run begins
// with a digit, a point before another digit belongs to it, and so does a dash within a number.
func runEnd(c string) int {
	begins, number := isDigit(rune(c[0])), true
	for i := range len(c) {
		b := c[i]
		inside := begins && (b == '.' || b == '-' && number) && i+1 < len(c) && isDigit(rune(c[i+1]))
		if !isDigit(rune(b)) && !isLetterByte(b) && !inside {
			return i
		}
		number = number && !isLetterByte(b)
	}
	return len(c)
}

// isTime reports whether c is a date, a time of the day, or both.
func isTime(c string) bool {
	isOther := func(r rune) bool { return !strings.ContainsRune("0123456789-:.TZ+/", r) }
	if !isDigit(rune(c[0])) || strings.ContainsFunc(c, isOther) {
		return false
	}
	return hasShape(c, "0000-00-00") || hasShape(c, "0000/00/00") || hasShape(c, "00:00:00") || hasShape(c, "0:00:00")
}

// hasShape reports whether c begins like shape, in which 0 stands for any digit.
func hasShape(c, shape string) bool {
	if len(c) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if shape[i] != c[i] && !(shape[i] == '0' && isDigit(rune(c[i]))) {
			return false
		}
	}
	return true
}

// isPath reports whether c is a path, and not two words with a slash between them, such as and/or.
func isPath(c string) bool {
	if len(c) > 2 && c[1] == ':' && isLetterByte(c[0]) && (c[2] == '\\' || c[2] == '/') {
		return true
	}
	if strings.HasPrefix(c, `\\`) || strings.Count(c, `\`) > 1 {
		return true
	}
	slash := strings.IndexByte(c, '/')
	if slash < 0 {
		return false
	}
	return strings.ContainsAny(c[:1], "/.~") || strings.IndexByte(c[slash+1:], '/') >= 0 || strings.ContainsAny(c, ".0123456789")
}

func isEmail(c string) bool {
	at := strings.IndexByte(c, '@')
	return at > 0 && strings.IndexByte(c[at:], '.') > 1
}

// address returns the placeholder of an IPv6 or a hardware address, or "".
func address(c string) string {
	for i := range len(c) {
		if b := c[i]; !isHexDigit(b) && b != ':' && b != '.' {
			return ""
		}
	}
	switch colons := strings.Count(c, ":"); {
	case colons == 5 && len(c) == len("00:00:00:00:00:00"):
		return anAddress
	case colons >= 5, colons >= 2 && strings.Contains(c, "::"):
		return aHost
	}
	return ""
}

// isNumber reports whether c is a number with its sign, point and groups. Percentages, fractions,
// versions, IPv4 addresses and ports are numbers too.
func isNumber(c string) bool {
	c = strings.TrimLeft(c, "+-")
	isOther := func(r rune) bool { return !isDigit(r) && !strings.ContainsRune("._:%-/", r) }
	return c != "" && isDigit(rune(c[0])) && !strings.ContainsFunc(c, isOther)
}

func isHexNumber(run string) bool {
	if len(run) < 3 || run[0] != '0' || run[1]|0x20 != 'x' {
		return false
	}
	return !slices.ContainsFunc([]byte(run[2:]), func(b byte) bool { return !isHexDigit(b) })
}

func isUUID(s string) bool {
	for i := range 36 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !isHexDigit(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isHexDigit(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f'
}

func isLatin(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// isLetterByte counts every byte of a rune beyond ASCII as a letter.
func isLetterByte(b byte) bool {
	return isLatin(b) || b >= utf8.RuneSelf
}

func isLatinRune(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
