package policy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

var update = flag.Bool("update", false, "write the lines that the samples give to testdata/causes/lines.golden")

// outputOf splits a sample into both outputs.
func outputOf(sample string) (stderr, stdout []byte) {
	if rest, ok := strings.CutPrefix(sample, "--- stdout\n"); ok {
		return nil, []byte(rest)
	}
	first, second, _ := strings.Cut(sample, "\n--- stdout\n")
	return []byte(first), []byte(second)
}

// Two failures of one tool have lines of their own, which are no closing lines: testdata has what
// real tools print. A change of the golden file is looked at line by line.
func TestCauses(t *testing.T) {
	files, err := filepath.Glob("testdata/causes/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d tools: %v", len(files), err)
	}
	var golden strings.Builder
	for _, file := range files {
		name, samples := strings.TrimSuffix(filepath.Base(file), ".txt"), readStacks(t, file)
		groups := map[string]string{}
		for _, s := range samples {
			line := WhyOf(outputOf(s.stack))
			fmt.Fprintf(&golden, "%s %s: %s\n", name, s.name, line)
			_, fingerprint := Signature(&nixie.Failure{Reason: nixie.ReasonCommandFailed, Text: line})
			if other := groups[fingerprint]; other != "" && other != s.name {
				t.Errorf("%s: %s and %s are one group: %s", name, other, s.name, line)
			}
			groups[fingerprint] = s.name
		}
		if len(samples) < 2 {
			t.Errorf("%s has %d samples", name, len(samples))
		}
		t.Logf("%s: %d causes", name, len(groups))
	}
	const file = "testdata/causes/lines.golden"
	if *update {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wanted, got := strings.Split(string(want), "\n"), strings.Split(golden.String(), "\n")
	for i := range max(len(wanted), len(got)) {
		if a, b := lineAt(wanted, i), lineAt(got, i); a != b {
			t.Fatalf("line %d of %s is\n%s\nnow it is\n%s", i+1, file, a, b)
		}
	}
}

// Outputs that are not installed here, and forms that several tools share.
func TestWhyOf(t *testing.T) {
	for name, c := range map[string]struct{ stderr, stdout, want string }{
		"nothing":               {"", "", ""},
		"blank":                 {" \n\n\t\n", "\n", ""},
		"last line":             {"first\nlast\n\n", "", "last"},
		"an answer in JSON":     {`{"error":{"code":"a","message":"b"}}`, "", `{"error":{"code":"a","message":"b"}}`},
		"an object as error":    {"", `{"level":50,"err":{"type":"Error","message":"no rate"},"msg":"failed"}`, "failed: no rate"},
		"a line that is cut":    {"", `{"level":"error","msg":"no ra`, `{"level":"error","msg":"no ra`},
		"an error, then words":  {"Error: no rate\nbye\n", "", "Error: no rate"},
		"two errors":            {"Error: first try\nError: second try\n", "", "Error: second try"},
		"standard error wins":   {"no rate\n", "Error: other\n", "no rate"},
		"standard output":       {"", "loading\nERROR: no such table\nbye\n", "ERROR: no such table"},
		"output that is no one": {"", "loading\ndone\n", ""},
		"only a frame":          {"\tat shop.Cart.pay(Cart.java:1)\n", "", ""},
		"only a closing line":   {"make: *** [Makefile:2: all] Error 3\n", "", "make: *** [Makefile:2: all] Error 3"},
		"closing, and output":   {"make: *** [Makefile:2: all] Error 3\n", "error: no rate\n", "error: no rate"},
		"colours":               {"\x1b[1;31mError:\x1b[0m no \x1b]8;;http://a\x07rate\x1b]8;;\x07\n", "", "Error: no rate"},
		"progress":              {"10%\r50%\r100%\rError: no rate\r\n 100% [====]\n", "", "Error: no rate"},
		"UTF-16":                {"\xff\xfeE\x00r\x00r\x00o\x00r\x00:\x00 \x00n\x00o\x00\n\x00", "", "Error: no"},
		"a zero byte":           {"a\x00b\n", "", "a\uFFFDb"},
		"no UTF-8":              {"last \xff line", "", "last \uFFFD line"},
		"windows":               {"Error: no rate\r\n\r\n", "", "Error: no rate"},
		"pydantic": {
			"pydantic_core._pydantic_core.ValidationError: 1 validation error for Order\nprice\n  Input should be a number\n", "",
			"pydantic_core._pydantic_core.ValidationError: 1 validation error for Order price Input should be a number",
		},
		"gRPC": {
			"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n" +
				"\tdetails = \"no\"\n\tdebug_error_string = \"x\"\n>\n", "",
			"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with: status = " +
				"StatusCode.UNAVAILABLE details = \"no\"",
		},
		"gradle": {
			"FAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':pay'.\n> no rate for EUX\n\n" +
				"* Try:\n> Run with --info option to get more log output.\n\n" +
				"BUILD FAILED in 1s\n", "",
			"Execution failed for task ':pay'. > no rate for EUX",
		},
		"mocha": {"", "  pays\n\n  0 passing\n  1 failing\n\n  1) pays the rate:\n", "1) pays the rate:"},
		"eslint": {"", "/srv/a.js\n  1:5  error  'x' is never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n",
			"1:5  error  'x' is never used  no-unused-vars"},
		"ruff": {"", "a.py:1:8: F401 [*] \x60os\x60 imported but unused\nFound 1 error.\n",
			"a.py:1:8: F401 [*] \x60os\x60 imported but unused"},
		"shellcheck": {"", "In a.sh line 1:\necho $x\n     ^-- SC2086 (info): Double quote.\n\n", "^-- SC2086 (info): Double quote."},
		"dotnet": {"Unhandled exception. System.InvalidOperationException: no rate\n   at A.B.C() in /srv/a.cs:line 3\n", "",
			"System.InvalidOperationException: no rate"},
	} {
		if got := WhyOf([]byte(c.stderr), []byte(c.stdout)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An output of any form is read in linear time.
func TestBadOutputs(t *testing.T) {
	const n = 1 << 20
	for name, text := range map[string]string{
		"one line":   strings.Repeat("a", n),
		"words":      strings.Repeat("error ", n/6),
		"progress":   strings.Repeat("50%\r", n/4),
		"escapes":    strings.Repeat("\x1b[", n/2),
		"titles":     strings.Repeat("\x1b]", n/2),
		"zeros":      strings.Repeat("\x00", n),
		"broken":     strings.Repeat("\xff", n),
		"frames":     strings.Repeat("\tat a.B.c(D.java:1)\n", n/20),
		"panics":     strings.Repeat("panicked at \n", n/13),
		"empty":      strings.Repeat("\n", n),
		"closing":    strings.Repeat("make: *** [a]\n", n/14),
		"colons":     strings.Repeat(":", n) + "\n",
		"UTF-16":     "\xff\xfe" + strings.Repeat("a\x00", n/2),
		"odd UTF-16": "\xfe\xff\x00",
	} {
		began := time.Now()
		checkWhy(t, []byte(text), []byte(text))
		t.Logf("%s: %s", name, time.Since(began).Round(time.Millisecond))
	}
}

func checkWhy(t *testing.T, stderr, stdout []byte) {
	t.Helper()
	line := WhyOf(stderr, stdout)
	if strings.ContainsAny(line, "\n\r\x00\x1b") || strings.ToValidUTF8(line, "") != line || len(line) > 3*(len(stderr)+len(stdout)) {
		t.Fatalf("%.200q of %.200q", line, stderr)
	}
}

func FuzzWhyOf(f *testing.F) {
	for _, first := range firstSamples(f, "testdata/causes") {
		f.Add([]byte(first), []byte{})
	}
	f.Add([]byte("\xff\xfe\x1b[0m\x00"), []byte("50%\rFAIL"))
	f.Fuzz(checkWhy)
}
