package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// quote makes a word that a person can paste into a POSIX shell, and that does
// nothing to the terminal on which it is shown.
func quote(s string) string {
	switch {
	case s != "" && strings.IndexFunc(s, func(c rune) bool { return !plainInShell(c) }) < 0:
		return s
	case escapeLine(s) == s:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return dollarQuote(s)
}

func plainInShell(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:=@%+,", c)
}

// dollarQuote writes bytes that cannot be shown as octal numbers, in the quotes
// that POSIX has for that.
func dollarQuote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + s[:size])
		case r == utf8.RuneError && size == 1, escapeLine(s[:size]) != s[:size]:
			for _, c := range []byte(s[:size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	b.WriteString("'")
	return b.String()
}

func quoteAll(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}
