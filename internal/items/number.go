package items

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// Number is a number as it is written, for comparisons: by digits and exponent, never expanded, so
// that it takes no more memory than its text. The zero Number is 0.
type Number struct {
	sign        int    // −1, 0 or 1
	whole, part string // the digits before and after the point, without zeros at both ends
	point       int64  // the number is 0.digits × 10^point
}

// MaxExponent limits the digits of the exponent of a number. With more it is none.
const MaxExponent = 18

// ParseNumber reads a number of JSON. It returns false for another text, and for an exponent of
// more than [MaxExponent] digits. The number holds on to the text.
func ParseNumber(text string) (Number, bool) { return readNumber(text, false) }

// readNumber reads a number; with cell also as people write it into a table: 007, +5, .5 and 5.
func readNumber(text string, cell bool) (n Number, ok bool) {
	rest, negative := strings.CutPrefix(text, "-")
	if cell && !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	whole, rest := cutDigits(rest)
	part := ""
	rest, point := strings.CutPrefix(rest, ".")
	if point {
		part, rest = cutDigits(rest)
	}
	switch {
	case whole == "" && (part == "" || !cell), !cell && (point && part == "" || len(whole) > 1 && whole[0] == '0'):
		return n, false
	}
	exponent, small, ok := readExponent(rest)
	whole, part = strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
	n = Number{sign: 1, whole: whole, part: part, point: int64(len(whole)) + exponent}
	if whole == "" {
		n.part = strings.TrimLeft(part, "0")
		n.point -= int64(len(part) - len(n.part))
	}
	if part == "" {
		n.whole = strings.TrimRight(whole, "0")
	}
	if n.whole == "" && n.part == "" {
		return Number{}, ok
	}
	if negative {
		n.sign = -1
	}
	return n, ok && small
}

func cutDigits(text string) (digits, rest string) {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// readExponent reads what follows the digits of a number. Small is false beyond [MaxExponent].
func readExponent(text string) (exponent int64, small, ok bool) {
	if text == "" {
		return 0, true, true
	}
	rest := text[1:]
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	digits, rest := cutDigits(rest)
	if text[0] != 'e' && text[0] != 'E' || digits == "" || rest != "" {
		return 0, false, false
	}
	if digits = strings.TrimLeft(digits, "0"); len(digits) > MaxExponent {
		return 0, false, true
	}
	exponent, _ = strconv.ParseInt("0"+digits, 10, 64) // it has digits alone, and few
	if text[1] == '-' {
		exponent = -exponent
	}
	return exponent, true, true
}

// Compare returns −1, 0 or 1 as n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	if order := cmp.Compare(n.sign, m.sign); order != 0 || n.sign == 0 {
		return order
	}
	order := cmp.Compare(n.point, m.point)
	if order == 0 {
		order = strings.Compare(n.whole+n.part, m.whole+m.part) // none ends in 0
	}
	return n.sign * order
}

// Index returns a whole number of at most nine digits.
func (n Number) Index() (index int, ok bool) {
	digits := n.whole + n.part
	if n.sign != 0 && (n.point > 9 || n.point < int64(len(digits))) {
		return 0, false
	}
	index, err := strconv.Atoi((digits + "0000000000")[:max(n.point, 1)])
	return n.sign * index, err == nil
}

// canonical writes a value of JSON so that equal numbers are equal texts, and without blanks. The
// rest stays as it is written.
func canonical(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		end := i + 1
		switch c := raw[i]; {
		case c == '"':
			for raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			end++
			out = append(out, raw[i:end]...)
		case c == '-' || isDigit(c):
			for end < len(raw) && bytes.IndexByte([]byte("0123456789.eE+-"), raw[end]) >= 0 {
				end++
			}
			out = appendNumber(out, string(raw[i:end]))
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			out = append(out, c)
		}
		i = end
	}
	return string(out)
}

func appendNumber(out []byte, text string) []byte {
	n, ok := ParseNumber(text)
	switch {
	case !ok:
		return append(out, text...)
	case n.sign == 0:
		return append(out, '0')
	case n.sign < 0:
		out = append(out, '-')
	}
	out = append(append(append(out, n.whole...), n.part...), 'e')
	return strconv.AppendInt(out, n.point, 10)
}
