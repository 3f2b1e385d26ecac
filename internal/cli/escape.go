package cli

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape makes foreign text harmless on a terminal: control characters, broken
// UTF-8 and characters that reorder text are written as escapes. Line ends and
// tabs stay.
func escape(s string) string {
	if !strings.ContainsFunc(s, harmful) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case harmful(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// escapeLine is escape for text that has to stay on one line.
func escapeLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(escape(s))
}

func harmful(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
