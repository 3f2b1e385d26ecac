package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// namedStack is a stack with the name of the cause that it tells.
type namedStack struct{ name, stack string }

// readStacks reads the stacks of a file: each begins with a line "=== NAME".
func readStacks(t *testing.T, file string) (list []namedStack) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq("\n"+string(data), "\n=== ") {
		if name, stack, _ := strings.Cut(part, "\n"); name != "" {
			list = append(list, namedStack{name, stack})
		}
	}
	return list
}

// Stacks of one cause are one group although their lines moved, and of different causes are not,
// although the texts are equal.
func TestStacks(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files of stacks: %v", len(files), err)
	}
	different := 0
	for _, file := range files {
		groups, pairs := map[string]string{}, 0
		list := readStacks(t, file)
		for i, s := range list {
			label, fingerprint := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: s.stack})
			for _, other := range list[:i] {
				_, others := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: other.stack})
				if (s.name == other.name) != (fingerprint == others) {
					t.Errorf("%s: %s and %s: one group is %v: %s", file, other.name, s.name, fingerprint == others, label)
				}
				if s.name != other.name {
					pairs++
				}
			}
			groups[s.name] = label
		}
		different += pairs
		t.Logf("%s: %d stacks of %d causes, %d pairs: %v", filepath.Base(file), len(list), len(groups), pairs, groups)
	}
	if different < 60 {
		t.Errorf("%d pairs of different stacks", different)
	}
}

// What is no stack gives no function, and a stack of any size or form is read in linear time.
func TestBadStacks(t *testing.T) {
	frame := "\tat shop.Cart.pay(Cart.java:1)\n"
	for name, c := range map[string]struct{ stack, want string }{
		"10,000 frames": {"java.lang.StackOverflowError\n" + strings.Repeat(frame, 10_000), "shop.Cart.pay"},
		"a circle": {
			"a.B: x\n" + strings.Repeat("Caused by: a.B: x\n"+frame+"Caused by: [CIRCULAR REFERENCE: a.B]\n", 100), "shop.Cart.pay",
		},
		"a line of 1 MB":   {strings.Repeat("at ", 1<<20/3), ""},
		"no end":           {"\tat shop.Cart.pay(Cart.java", ""},
		"zeros":            {strings.Repeat("\x00", 1<<16), ""},
		"UTF-16":           {"\xff\xfe\t\x00a\x00t\x00", ""},
		"progress":         {strings.Repeat("50%\r", 1<<10) + "\n" + frame, "shop.Cart.pay"},
		"colours":          {"\x1b[31mboom\x1b[0m\n" + frame, "shop.Cart.pay"},
		"windows":          {"a.B: x\r\n\tat shop.Cart.pay(Cart.java:1)\r\n", "shop.Cart.pay"},
		"only the library": {"a.B: x\n\tat java.base/java.lang.Integer.parseInt(Integer.java:1)\n", "java.lang.Integer.parseInt"},
		"nothing":          {"", ""},
	} {
		if got := siteOf(c.stack); got.function != c.want {
			t.Errorf("%s: %q, want %q", name, got.function, c.want)
		}
	}
	for name, text := range hostileTexts(1 << 18) {
		label, _ := Signature(&nixie.Failure{Text: name, Stack: "a.B: x\n" + frame + strings.ReplaceAll(text, "a", "\n\tat a")})
		checkLabel(t, label)
	}
}

// firstSamples returns the first sample of each file of a folder.
func firstSamples(f *testing.F, folder string) (samples []string) {
	f.Helper()
	files, err := filepath.Glob(folder + "/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n=== ")
		samples = append(samples, first)
	}
	return samples
}

func FuzzStacks(f *testing.F) {
	for _, first := range firstSamples(f, "testdata/stacks") {
		f.Add(first)
	}
	f.Fuzz(func(t *testing.T, stack string) {
		failure := &nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: stack}
		label, first := Signature(failure)
		checkLabel(t, label)
		if _, again := Signature(failure); again != first {
			t.Fatal("the same stack gave another group")
		}
	})
}
