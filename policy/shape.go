package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Lengths from which something counts as an identifier.
const (
	shortHex = 7  // an abbreviated commit
	longHex  = 16 // a hash; a shorter one may well be all digits
	randomID = 12 // letters mixed with digits, with at least randomGroups numbers among them

	randomGroups = 3
)

// wholeChunk returns the placeholder of a chunk, or "" if the caller has to write it run by run.
func wholeChunk(c string) string {
	switch {
	case c == "":
		return ""
	case strings.Contains(c, "://"):
		return aURL
	case len(c) == 36 && isUUID(c): // before numbers: it may be all digits
		return anID
	case isTime(c):
		return aTime
	case isNumber(c):
		return aNumber
	case isPath(c):
		return aPath
	case isEmail(c):
		return anEmail
	case isAddress(c):
		return anAddress
	}
	return ""
}

// wholeRun returns the placeholder of a run of letters and digits, or "".
func wholeRun(run string) string {
	digits, groups, hex := 0, 0, true
	for i := range len(run) {
		if b := run[i]; isDigit(rune(b)) {
			digits++
			if i == 0 || !isDigit(rune(run[i-1])) {
				groups++
			}
		} else if b != '.' {
			hex = hex && isHexDigit(b)
		}
	}
	switch {
	case digits == 0:
		return ""
	case isNumber(run):
		return aNumber
	case isHexNumber(run), hex && len(run) >= longHex:
		return aHex
	case hex && len(run) >= shortHex:
		return aNumber
	}
	if kind := quantity(run); kind != "" {
		return kind
	}
	if len(run) >= randomID && groups >= randomGroups {
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
// with a digit, a point before another digit belongs to it.
func runEnd(c string) int {
	number := isDigit(rune(c[0]))
	for i := range len(c) {
		b := c[i]
		point := number && b == '.' && i+1 < len(c) && isDigit(rune(c[i+1]))
		if !isDigit(rune(b)) && !isLetterByte(b) && !point {
			return i
		}
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

// isAddress reports whether c is an IPv6 or a hardware address.
func isAddress(c string) bool {
	for i := range len(c) {
		if b := c[i]; !isHexDigit(b) && b != ':' && b != '.' {
			return false
		}
	}
	colons := strings.Count(c, ":")
	return colons >= 5 || colons >= 2 && strings.Contains(c, "::")
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
