package cli

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for from, want := range map[string]string{
		"": "", "plain ü 漢\n\tx": "plain ü 漢\n\tx", "\x1b[2J": `\x1b[2J`, "a\rb": `a\rb`, "\x7f": `\x7f`, "\u009b1m": `\u009b1m`,
		"\xff\xc3": `\xff\xc3`, "\u202eevil": `\u202eevil`, "\u2028": `\u2028`, "\ufeff": `\ufeff`, "\U000e0041": `\U000e0041`,
		"\x00": `\x00`, "\ufffd": "\ufffd",
	} {
		if got := escape(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
	if got := escapeLine("a\n\tb"); got != `a\n\tb` {
		t.Errorf("got %q", got)
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;x\x07", "\xff", "\u202e", "a\nb\t", `\x1b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := escape(s)
		if escape(once) != once {
			t.Fatalf("%q is escaped again: %q", once, escape(once))
		}
		if !utf8.ValidString(once) {
			t.Fatalf("%q is not UTF-8", once)
		}
		for _, r := range once {
			if (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) && r != '\n' && r != '\t' {
				t.Fatalf("%q is in %q", r, once)
			}
		}
		if strings.ContainsAny(escapeLine(s), "\n\t") {
			t.Fatalf("%q is not one line", escapeLine(s))
		}
	})
}

// Quoted words come out of a shell as they went in.
func TestQuote(t *testing.T) {
	words := []string{"", "plain", "two words", "it's", `a\b`, "a\nb\n", "\t", "\x1b[2J\x07", "\xff\xfe", "\u202e'\\", "ü", "$HOME", "`x`",
		"{line}", "*", "~", "#", "!x", "-n", "a=b", "\x01\x31"}
	script := ""
	for _, w := range words {
		q := quote(w)
		if escapeLine(q) != q {
			t.Errorf("%q would act on a terminal", q)
		}
		script += " " + q
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	out, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' `+script).Output()
	if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
		t.Errorf("%v: got %q\nwant %q", err, out, want)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "'", "\\", "\n", "\xff", "\u202e", "$'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := quote(s)
		if escapeLine(q) != q {
			t.Fatalf("%q would act on a terminal", q)
		}
		if got := unquote(t, q); got != s {
			t.Fatalf("%q became %q, which is %q", s, q, got)
		}
	})
}

// unquote reads a quoted word as a shell does.
func unquote(t *testing.T, q string) string {
	inner, dollar := strings.CutPrefix(q, "$'")
	if !dollar {
		if strings.HasPrefix(q, "'") {
			q = strings.ReplaceAll(q, `'\''`, "\x00")
			return strings.ReplaceAll(strings.Trim(q, "'"), "\x00", "'")
		}
		return q
	}
	inner = strings.TrimSuffix(inner, "'")
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '\'':
			t.Fatalf("%q ends too early", q)
		case inner[i] != '\\':
			b.WriteByte(inner[i])
		case inner[i+1] >= '0' && inner[i+1] <= '7':
			b.WriteByte((inner[i+1]-'0')<<6 | (inner[i+2]-'0')<<3 | (inner[i+3] - '0'))
			i += 3
		default:
			i++
			b.WriteByte(inner[i])
		}
	}
	return b.String()
}
