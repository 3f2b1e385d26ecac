package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// nineLanguages have at least pairsOfEach pairs of different causes each.
var nineLanguages = []string{"go", "java", "python", "node", "ruby", "dotnet", "rust", "php", "elixir"}

const (
	pairsOfEach = 6
	pairsOfAll  = 60
)

// Stacks of one cause are one group although their lines moved, and of different causes are not,
// although the texts are equal.
func TestStacks(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	pairs, all := map[string]int{}, 0
	for _, file := range files {
		groups := map[string]string{} // of causes
		list := readStacks(t, file)
		for i, s := range list {
			label, fingerprint := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: s.stack})
			for _, other := range list[:i] {
				_, others := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: other.stack})
				if (s.name == other.name) != (fingerprint == others) {
					t.Errorf("%s: %s and %s: one group is %v: %s", file, other.name, s.name, fingerprint == others, label)
				}
			}
			groups[s.name] = label
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		language := strings.TrimSuffix(name, "-by-hand")
		pairs[language] += len(groups) * (len(groups) - 1) / 2
		all += len(groups) * (len(groups) - 1) / 2
		t.Logf("%s: %d stacks of %d causes: %v", name, len(list), len(groups), groups)
	}
	t.Logf("%d pairs of causes: %v", all, pairs)
	for _, language := range nineLanguages {
		if pairs[language] < pairsOfEach {
			t.Errorf("%s: %d pairs of causes, want %d", language, pairs[language], pairsOfEach)
		}
	}
	if all < pairsOfAll {
		t.Errorf("%d pairs of causes, want %d", all, pairsOfAll)
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

// Ten thousand frames and as many causes are read in linear time, in each language: quadratic time
// would take minutes.
func TestHugeStacks(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stack := readStacks(t, file)[0].stack
		lines := strings.Count(stack, "\n") + 1
		began := time.Now()
		label, _ := Signature(&nixie.Failure{Reason: nixie.ReasonHandler, Text: "failed", Stack: strings.Repeat(stack+"\n", 10_000/lines)})
		checkLabel(t, label)
		t.Logf("%s: %s", filepath.Base(file), time.Since(began).Round(time.Millisecond))
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
