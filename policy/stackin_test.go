package policy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// The stack that an output has is found among other lines, and names the same cause as the stack
// alone.
func TestStackIn(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		for _, s := range readStacks(t, file) {
			if siteOf(s.stack).function == "" && !isGo(s.stack) {
				continue
			}
			stack := strings.TrimRight(s.stack, "\n")
			got := StackIn([]byte("loading 7 orders\n\n" + stack + "\n\nmake: *** [all] Error 1\n"))
			_, want := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: stack})
			_, is := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: got})
			if is != want {
				t.Errorf("%s, %s: another cause:\n%s\nof\n%s", file, s.name, got, stack)
			}
			if strings.Contains(got, "make: ***") || strings.Contains(got, "loading") || !strings.Contains(stack, got) {
				t.Errorf("%s, %s:\n%s\nof\n%s", file, s.name, got, stack)
			}
			found++
		}
	}
	t.Logf("%d stacks", found)
	for _, output := range []string{"", "exit status 1", "panic: x", "a:\n  b\n", strings.Repeat("x\n", 1000)} {
		if got := StackIn([]byte(output)); got != "" {
			t.Errorf("%q: %q", output, got)
		}
	}
}
