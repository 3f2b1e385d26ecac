package policy

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"open /data/a/b.json: no such file or directory", "open <path>: no such file or directory"},
		{`open "/data/a b.json": denied`, "open <str>: denied"},
		{"order 4711 of user7 failed", "order <n> of user<n> failed"},
		{"item 01890a5d-ac96-774b-bcce-b302099a8057 gone", "item <id> gone"},
		{"item-01890A5D-AC96-774B-BCCE-B302099A8057: gone", "item-<id>: gone"},
		{"commit 3fa85f6 is not 1234567", "commit <n> is not <n>"},
		{"item 01890000-1111-7222-8333-444444444444 gone", "item <id> gone"},
		{"sum e3b0c44298fc1c149afbf4c8996fb924 differs", "sum <hex> differs"},
		{"fault at 0xc000123456", "fault at <hex>"},
		{"waited 1m30s, then 250ms and 1.5s more, 100µs", "waited <dur>, then <dur> and <dur> more, <dur>"},
		{"2026-03-01T12:00:00.5+02:00 late", "<time> late"},
		{"2026/03/01 12:00:00 late", "<time> late"},
		{"at 12:34:56.789 late", "at <time> late"},
		{"dial tcp 10.0.0.7:5432: connection refused", "dial tcp <host>:5432: connection refused"},
		{"dial tcp [fe80::1]:5432: refused", "dial tcp [<host>]:5432: refused"},
		{"GET https://x.org/a?b=1: 404", "GET https://x.org: 404"},
		{"POST https://x.org/a: 503 Service Unavailable", "POST https://x.org: 503 Service Unavailable"},
		{"POST https://x.org/a: 429 Too Many Requests", "POST https://x.org: 429 Too Many Requests"},
		{"upstream said 502 Bad Gateway for order 502", "upstream said 502 Bad Gateway for order <n>"},
		{"unexpected status: 429, want 200", "unexpected status: 429, want <n>"},
		{"HTTP 404 of item 404", "HTTP 404 of item <n>"},
		{"status code 4041", "status code <n>"},
		{"status 999", "status <n>"},
		{"duplicate key (SQLSTATE 23505)", "duplicate key (SQLSTATE 23505)"},
		{"SQLSTATE[42P01]: no table", "SQLSTATE[42P01]: no table"},
		{"SQLSTATE 235051 and 23505", "SQLSTATE <n> and <n>"},
		{"open: [Errno 13] Permission denied: '/a/b'", "open: [Errno 13] Permission denied: <str>"},
		{"no such file (os error 2)", "no such file (os error 2)"},
		{"exit status 3 after exit code 1 of 3", "exit status 3 after exit code 1 of <n>"},
		{"error 2 of errno 1234", "error <n> of errno <n>"},
		{`unknown currency "EUX"`, `unknown currency "EUX"`},
		{`state 'NOT_READY' of "A"`, `state 'NOT_READY' of <str>`},
		{`item has no field "total" for argument 2`, `item has no field "total" for argument <n>`},
		{`column "price" of relation "orders"`, `column "price" of relation "orders"`},
		{`no user "ann" and no field "of 7"`, "no user <str> and no field <str>"},
		{`field "a_name_that_is_quite_long" is missing`, `field "a_name_that_is_quite_long" is missing`},
		{`field "order 7" is missing`, "field <str> is missing"},
		{`{"error": "no order 7", "id": "x9"}`, `{"error": "no order <n>", "id": <str>}`},
		{`err="open \"/a\": denied" job=7`, `err="open \<str>: denied" job=<n>`},
		{"rhost=h12.example.org and 10.0.0.7 and [fe80::1]", "rhost=<host> and <host> and [<host>]"},
		{"GET http://db3.example.org:8080/a and https://10.0.0.1/", "GET http://<id>.example.org:8080 and https://<host>"},
		{"blk_-17 and a-1-2-3 and +5", "blk_<n> and a-<n> and <n>"},
		{"mac 00:1a:2b:3c:4d:5e at com.example.app", "mac <addr> at com.example.app"},
		{"mail to bob.7@example.org bounced", "mail to <email> bounced"},
		{"body of 10MiB, limit 4096B", "body of <size>, limit <size>"},
		{"ids [1, 2, 3] and [4]", "ids [<n>] and [<n>]"},
		{"index out of range [5] with length 3", "index out of range [<n>] with length <n>"},
		{"can't open 'x y', don't know why", "can't open <str>, don't know why"},
		{"key=value id=77 path=/a/b", "key=value id=<n> path=<path>"},
		{`C:\dir\file.txt and \\host\share`, "<path> and <path>"},
		{"read and/or write text/html", "read and/or write text/html"},
		{"main.go:12:5: undefined: x", "main.go:<n>: undefined: x"},
		{"src/main.go:12:5: undefined: x", "<path>: undefined: x"},
		{"token 7hG2kQ9zLmX4pW1c rejected", "token <id> rejected"},
		{"3/5 done, -3.14 and 1_000, 50%.", "<n> done, <n> and <n>"},
		{"  many\tblanks\r\nand lines\x00 ", "many blanks and lines"},
		{"a b c d e f g h i j k l m n", "a b c d e f g h i j k l"},
		{"“curly” and «angle» and `tick`", "<str> and <str> and <str>"},
		{`bad value "a::", bad value "z()", bad value "a::b"`, "bad value <str>, bad value <str>, bad value <str>"},
		{`calls "a::" and "a::b" and "z()"`, `calls <str> and "a::b" and "z()"`},
		{`unclosed "quote of 7`, `unclosed "quote of <n>`},
		{"", ""},
		{strings.Repeat("x", 100) + " y", strings.Repeat("x", 64) + " y"},
	} {
		if got := normalise(c.text); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func commandFailed(text string, exit int) *nixie.Failure {
	return &nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonCommandFailed, Text: text, ExitCode: &exit}
}

// A change of any of these values needs another fingerprintVersion.
func TestR22_SignaturesAreStableAcrossBuilds(t *testing.T) {
	step := commandFailed("build: open /a/b.go: no such file", 1)
	step.Step = "build"
	for _, c := range []struct {
		f                  *nixie.Failure
		label, fingerprint string
	}{
		{commandFailed("open /a/b.go: no such file", 1), "command-failed[exit 1]: open <path>: no such file", "v3-8fca742f35a88081"},
		{step, "command-failed[step build, exit 1]: open <path>: no such file", "v3-7a09e4652079792c"},
		{&nixie.Failure{Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout}, "timeout", "v3-3104203e3c928f62"},
	} {
		label, fingerprint := Signature(c.f)
		if label != c.label || fingerprint != c.fingerprint {
			t.Errorf("got %q %s, want %q %s", label, fingerprint, c.label, c.fingerprint)
		}
	}
}

// isAnyValue reports whether a quoted text is neither a server, a URL nor a type, which stay.
func isAnyValue(text string) bool {
	return !isConstant(text) && (strings.Contains(text, " ") || !strings.ContainsAny(text, ".:"))
}

func TestR22_OneCauseIsOneGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			id := nixie.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Filter(func(b []byte) bool { return !nixie.ID(b).IsZero() }).Draw(t,
				name+" id"))
			n := rapid.IntRange(0, 1<<40).Draw(t, name+" n")
			dir := rapid.StringMatching(`(/[a-z_][a-z0-9_.-]{0,19}){1,6}`).Draw(t, name+" dir")
			took := time.Duration(rapid.Int64Range(1, 1<<50).Draw(t, name+" took"))
			at := noon.Add(took).Format(time.RFC3339Nano)
			quoted := rapid.StringMatching(`([a-z0-9][ -!#-\[\]-~]{0,40})?`).Filter(isAnyValue).Draw(t, name+" quoted")
			return fmt.Sprintf("item %s: read %s at %d: bad value %q after %s since %s", id, dir, n, quoted, took, at)
		}
		label1, print1 := Signature(commandFailed(text("first"), 2))
		label2, print2 := Signature(commandFailed(text("second"), 2))
		if label1 != label2 || print1 != print2 {
			t.Fatalf("two groups:\n%s\n%s", label1, label2)
		}
	})
}

func TestR22_AnotherCauseIsAnotherGroup(t *testing.T) {
	base := func() *nixie.Failure { return commandFailed("open /a: no such file", 1) }
	_, first := Signature(base())
	seen := map[string]string{first: "base"}
	for name, change := range map[string]func(*nixie.Failure){
		"step":           func(f *nixie.Failure) { f.Step = "test" },
		"other step":     func(f *nixie.Failure) { f.Step = "merge" },
		"exit code":      func(f *nixie.Failure) { *f.ExitCode = 2 },
		"no exit code":   func(f *nixie.Failure) { f.ExitCode = nil },
		"class":          func(f *nixie.Failure) { f.Class = nixie.ClassPermanent },
		"reason":         func(f *nixie.Failure) { f.Reason = nixie.ReasonHandler },
		"words":          func(f *nixie.Failure) { f.Text = "open /a: permission denied" },
		"function":       func(f *nixie.Failure) { f.Stack = "goroutine 1 [running]:\nmain.a(0x1)\n\t/x/y.go:3 +0x1\n" },
		"other function": func(f *nixie.Failure) { f.Stack = "goroutine 1 [running]:\nmain.b(0x1)\n\t/x/y.go:3 +0x1\n" },
	} {
		f := base()
		change(f)
		_, fingerprint := Signature(f)
		if other, taken := seen[fingerprint]; taken {
			t.Errorf("%s and %s are one group", name, other)
		}
		seen[fingerprint] = name
	}
}

func TestR22_LinesAndAddressesOfAStackDoNotCount(t *testing.T) {
	f := commandFailed("x", 1)
	f.Stack = "goroutine 7 [running]:\nmain.(*T).run(0xc0001, {0x1, 0x2})\n\t/a/b.go:10 +0x12\nmain.main()\n\t/a/b.go:20 +0x34\n"
	_, before := Signature(f)
	f.Stack = "goroutine 99 [running]:\nmain.(*T).run(0xc9999, {0x3, 0x4})\n\t/other/b.go:77 +0xff\nmain.main()\n\t/other/b.go:1 +0x1\n"
	if _, after := Signature(f); after != before {
		t.Error("the next build makes another group")
	}
}

func explode(n []int) int { return n[len(n)] }

func caught(do func()) (stack string) {
	defer func() {
		if recover() != nil {
			stack = string(debug.Stack())
		}
	}()
	do()
	return ""
}

func TestFramesBeginWhereItPanicked(t *testing.T) {
	got := frames(caught(func() { explode(nil) }))
	if len(got) != signatureFrames || !strings.HasSuffix(got[0], "policy.explode") {
		t.Errorf("frames %q", got)
	}
	for _, junk := range []string{"", "\n\n", "no stack at all", "(", ")", "f(", strings.Repeat("x(1)\n", 9)[:20]} {
		for _, name := range frames(junk) {
			if name != "x" {
				t.Errorf("%q has frame %q", junk, name)
			}
		}
	}
}

// A panic while another is handled names the first one. A stack without a panic stays whole.
func TestPanicStack(t *testing.T) {
	const caught = "goroutine 7 [running]:\nruntime/debug.Stack()\n\ta/stack.go:26 +0x5e\n" +
		"lib.Recoverer.func1()\n\tlib/r.go:1 +0x1\npanic({0x1, 0x2})\n\truntime/panic.go:860 +0x13a\n"
	const rest = "main.(*Shop).Pay(0xc1, {0x2})\n\tshop/main.go:18 +0x41\nmain.main()\n\tshop/main.go:3 +0x2\n"
	for _, c := range []struct{ stack, rest, where string }{
		{caught + rest, "goroutine 7 [running]:\n" + rest, "main.(*Shop).Pay at shop/main.go:18"},
		{caught + "runtime.goPanicIndex(0x1, 0x2)\n\truntime/panic.go:115 +0x74\n" + rest, "goroutine 7 [running]:\n" + rest,
			"main.(*Shop).Pay at shop/main.go:18"},
		{caught + "main.again()\n\tshop/a.go:1 +0x1\npanic(0x3)\n\truntime/panic.go:860\n" + rest, "goroutine 7 [running]:\n" + rest,
			"main.(*Shop).Pay at shop/main.go:18"},
		{rest, rest, ""},
		{caught, caught, ""},
		{"", "", ""},
		{"panic(1)\nmain.cut(0x1)", "main.cut(0x1)", "main.cut"},
	} {
		if rest, where := PanicStack(c.stack); rest != c.rest || where != c.where {
			t.Errorf("%q\n at %q, the rest is %q", c.stack, where, rest)
		}
	}
}

func checkLabel(t testing.TB, label string) {
	t.Helper()
	if len(label) > MaxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("label of %d bytes is not one printable line: %q", len(label), label)
	}
}

func TestLabelIsCutWithAMark(t *testing.T) {
	f := commandFailed(strings.Repeat("wörter"+strings.Repeat("é", 20)+" ", 12), 1)
	label, _ := Signature(f)
	checkLabel(t, label)
	if !strings.HasSuffix(label, "…") || len(label) < MaxLabel-utf8.UTFMax {
		t.Errorf("%d bytes: %q", len(label), label)
	}
}

func hostileTexts(n int) map[string]string {
	return map[string]string{
		"digits":      strings.Repeat("1", n),
		"numbers":     strings.Repeat("1 ", n/2),
		"quotes":      strings.Repeat(`"`, n),
		"open quotes": strings.Repeat(`x "a`, n/4),
		"apostrophes": strings.Repeat(`'a`, n/2),
		"backslashes": strings.Repeat(`"\`, n/2),
		"slashes":     strings.Repeat("/", n),
		"hex":         strings.Repeat("deadbeef0", n/9),
		"dashes":      strings.Repeat("a-", n/2),
		"mixed":       strings.Repeat("a1", n/2),
		"colons":      strings.Repeat(":", n),
		"invalid":     strings.Repeat("\xff", n),
		"commas":      strings.Repeat("1,", n/2),
		"curly":       strings.Repeat("“a ", n/5),
	}
}

// A signature of 1 MiB of hostile text takes milliseconds if the algorithm is linear, and minutes
// if it is quadratic. Then the deadline of the test run ends it.
func TestB081_HostileTextTakesLinearTime(t *testing.T) {
	for _, text := range hostileTexts(1 << 20) {
		f := commandFailed(text, 1)
		f.Stack = text
		label, _ := Signature(f)
		checkLabel(t, label)
	}
}

// longNumber is longer than any code or port that stays.
var longNumber = regexp.MustCompile(`[0-9]{9,}`)

func FuzzNormalise(f *testing.F) {
	for _, text := range hostileTexts(64) {
		f.Add(text)
	}
	f.Add("open /a/b.c:1:2: it's 'x' “y” 10.0.0.1:80 2026-03-01T00:00:00Z 1m3s")
	f.Fuzz(func(t *testing.T, text string) {
		got := normalise(text)
		if got != normalise(text) {
			t.Fatal("the same text gave another result")
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q is not one printable line", got)
		}
		if words := len(strings.Split(got, " ")); words > signatureWords || len(got) > signatureWords*(signatureWord+1) {
			t.Fatalf("%d words, %d bytes", words, len(got))
		}
		if number := longNumber.FindString(got); number != "" {
			t.Fatalf("%q still holds %s of %q", got, number, text)
		}
	})
}
