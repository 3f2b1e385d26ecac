package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// Both ends of an output are kept for all sizes of writes, and what is between them is
// counted.
func TestTailKept(t *testing.T) {
	var lines strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	all := lines.String()
	for _, size := range []int{0, 1, headLimit, DefaultTailLimit - 1, DefaultTailLimit, DefaultTailLimit + 1,
		DefaultTailLimit + headLimit, 2 * DefaultTailLimit, len(all)} {
		for _, step := range []int{100, 32 << 10, len(all)} {
			for _, limit := range []int{0, 16 << 10, DefaultTailLimit, 128 << 10} {
				text, r := all[:size], ring{limit: limit}
				for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
					r.write([]byte(rest[:min(step, len(rest))]))
				}
				checkKept(t, fmt.Sprintf("%d bytes by %d into %d", size, step, limit), text, r.tail())
			}
		}
	}
}

func checkKept(t *testing.T, name, text string, tail Tail) {
	t.Helper()
	data, cut := tail.Kept(nixie.MaxAttachment)
	kept := string(data)
	if len(kept) > nixie.MaxAttachment {
		t.Errorf("%s: %d bytes kept", name, len(kept))
	}
	first, last, joined := strings.Cut(kept, fmt.Sprintf("…[%d bytes cut]…\n", cut))
	switch {
	case cut == 0 && kept != text, !joined && !strings.HasSuffix(text, kept):
		t.Errorf("%s: kept %.40q…, %d cut", name, kept, cut)
	case joined && (!strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || !strings.HasSuffix(first, "\n") ||
		!strings.HasPrefix(last, "line ")):
		t.Errorf("%s: %.20q and %.20q, %d cut", name, first, last, cut)
	case joined && len(first)+len(last)+int(cut) != len(text), !joined && len(kept)+int(cut) != len(text):
		t.Errorf("%s: %d bytes kept and %d cut of %d", name, len(kept), cut, len(text))
	}
}

// What a program prints after its error does not hide it, on neither output.
func TestErrorBeforeMuchOutput(t *testing.T) {
	body := strings.Repeat("    data: '0123456789abcdef0123456789abcdef',\n", 1<<10)
	for _, times := range []int{1, 2, 20} {
		for _, c := range []struct{ before, after string }{
			{"Error: Request failed with status code 404\n", strings.Repeat(body, times)},
			{strings.Repeat(body, times), "\nError: Request failed with status code 404\nNode.js v20.1.0\n"},
			{"GET /a\nError: Request failed with status code 404\n", strings.Repeat("    at a (/srv/a.js:1:2)\n", times<<10)},
		} {
			for _, stream := range []string{"stderr", "stdout"} {
				r := ring{limit: DefaultTailLimit}
				r.write([]byte(c.before + c.after))
				result := Result{ExitCode: 1, Stderr: r.tail()}
				if stream == "stdout" {
					result = Result{ExitCode: 1, Stdout: r.tail()}
				}
				if got := result.Err(nil).Error(); got != "Error: Request failed with status code 404" {
					t.Errorf("%s, %d bytes: %.100q", stream, len(c.before)+len(c.after), got)
				}
			}
		}
	}
}
