package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// escape makes foreign text harmless on a terminal: it writes control characters, broken UTF-8 and
// characters that reorder text as escapes. Line ends and tabs stay.
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

// escapeLine escapes line ends and tabs as well.
func escapeLine(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(escape(s), "\n", `\n`), "\t", `\t`)
}

func harmful(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// quote makes a word that a person can paste into a POSIX shell, and that is harmless on a
// terminal.
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

// dollarQuote writes bytes that cannot be shown as octal numbers, in the $'…' quotes of POSIX.
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

func quoteAll(args []string) string { return strings.Join(quoted(args), " ") }

func quoted(args []string) []string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quote(a)
	}
	return words
}

// typedFlags writes those of the named flags that were given, to be typed again.
func typedFlags(fs *pflag.FlagSet, names ...string) (words []string) {
	for _, name := range names {
		if f := fs.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			words = append(words, quoted(flagWords(f))...)
		}
	}
	return words
}

// flagWords returns the words that give a flag its present value.
func flagWords(f *pflag.Flag) (words []string) {
	name, value := "--"+f.Name, f.Value.String()
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case f.Value.Type() == "stringArray":
		for _, v := range list.GetSlice() {
			words = append(words, name, v)
		}
		return words
	case isList:
		value = strings.Join(list.GetSlice(), ",")
	case f.Value.Type() == "bool":
		return []string{name + "=" + value}
	case f.Value.Type() == "duration" && value == "":
		value = "0" // the help prints no default that is nothing
	}
	return []string{name, value}
}
