//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
)

// badInput is a row of the table of bad input. Code and says are written by
// hand: what a person has to be told.
type badInput struct {
	name  string
	given func(d *workspace) []string // prepares the workspace and returns what stands behind "nixie run"
	code  int
	says  string                       // part of the only message on stderr
	dead  string                       // or reason and text of the only letter
	after func(*testing.T, *workspace) // what has to hold besides
}

func args(list ...string) func(*workspace) []string { return func(*workspace) []string { return list } }

func listed(name, text string, more ...string) func(*workspace) []string {
	return func(d *workspace) []string {
		d.write(name, text)
		return append([]string{name}, more...)
	}
}

// secret is the password in the URLs of stores.
const secret = "hunter2"

// untouched says that no store was made.
func untouched(t *testing.T, d *workspace) {
	t.Helper()
	if _, err := os.Stat(d.path("nixie.db")); err == nil {
		t.Error("a store was made")
	}
}

const sevenLines = "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n{\"id\":5}\n{\"id\":6}\n{\"id\":7,}\n{\"id\":8}\n"

func badInputs() []badInput {
	return slices.Concat(badLists(), badPlaces(), badItems(), badFlags(), badDisks())
}

func badLists() []badInput {
	return []badInput{
		{"bad JSON in line 7", listed("a.jsonl", sevenLines, "--", "true"), 2, "a.jsonl:7:9: ", "", untouched},
		{"bad JSON, --skip-bad", listed("a.jsonl", sevenLines, "--skip-bad", "--", "true"), 5, "", "serialization a.jsonl:7:9: ",
			func(t *testing.T, d *workspace) {
				if l := d.letter(d.letters("")[0].ID); l.Message.Body != `{"id":7,}` {
					t.Errorf("raw bytes %q", l.Message.Body)
				}
			}},
		{"an ID twice in a list", listed("a.jsonl", "{\"id\":\"x\",\"n\":1}\n\n{\"id\":\"x\",\"n\":2}\n", "--", "true"), 2,
			`a.jsonl:3:1: line 1 has the ID "x" already`, "", untouched},
		{"an ID of the job, other content", func(d *workspace) []string {
			d.write("a.jsonl", "{\"id\":\"y\"}\n{\"id\":\"x\",\"n\":1}\n")
			d.nixie(0, "run", "a.jsonl", "--job", "j", "--", "true")
			d.write("a.jsonl", "{\"id\":\"new\"}\n{\"id\":\"y\"}\n{\"id\":\"x\",\"n\":2}\n")
			return []string{"a.jsonl", "--job", "j", "--", "true"}
		}, 2, `item "x" in line 3 differs from the one that job j has by that ID, which it took from line 2: `, "",
			func(t *testing.T, d *workspace) {
				if s := d.run(0, "-", "--job", "j", "--", "true"); s.Items != 2 {
					t.Errorf("%d items, want 2: nothing is enqueued", s.Items)
				}
			}},
	}
}

func badPlaces() []badInput {
	return []badInput{
		{"no list", args("--", "true"), 2, "no list: nixie run ITEMS -- COMMAND", "", untouched},
		{"no command", listed("a.txt", "a\n"), 2, "no command: give it after --, as in nixie run a.txt -- ", "", untouched},
		{"no command after --", listed("a.txt", "a\n", "--"), 2, "no command: give it after --", "", untouched},
		{"two lists", listed("a.txt", "a\n", "b.txt", "--", "true"), 2, "2 lists: give one, and the command after --", "", untouched},
		{"program not found", listed("a.txt", "a\n", "--", "no-such-program"), 2,
			`command "no-such-program" cannot be started: program not found: check its name and PATH`, "", untouched},
		{"not executable", func(d *workspace) []string {
			if err := os.WriteFile(d.path("plain"), []byte("#!/bin/sh\n"), 0o600); err != nil {
				d.t.Fatal(err)
			}
			return listed("a.txt", "a\n", "--", "./plain")(d)
		}, 2, `command "./plain" cannot be started: permission denied: make the file executable`, "", untouched},
		{"script of a missing interpreter", func(d *workspace) []string {
			d.write("script", "#!/no/such/interpreter\n")
			return listed("a.txt", "a\nb\n", "--", "./script")(d)
		}, 1, `stopped: command "./script" cannot be started: its interpreter is missing: check the line after #! of `, "",
			func(t *testing.T, d *workspace) {
				if s := d.run(0, "a.txt", "--max-attempts", "1", "--", "true"); s.Succeeded != 2 {
					t.Errorf("the items are not there any more: %+v", s)
				}
			}},
		{"missing list", args("none.jsonl", "--", "true"), 1, "none.jsonl does not exist: check the path of the list", "", untouched},
		{"list that is a folder", args(".", "--", "true"), 2, ". is a directory: name a file", "", untouched},
		{"list that cannot be read", args("/proc/self/mem", "--", "true"), 1, "/proc/self/mem cannot be read: input/output error", "",
			untouched},
		{"standard input without a job", args("-", "--", "true"), 2, "standard input has no name: give --job NAME", "", untouched},
		{"newer schema", func(d *workspace) []string {
			d.write("a.txt", "a\n")
			d.nixie(0, "run", "a.txt", "--", "true")
			conn, err := sqlite.OpenConn(d.path("nixie.db"), sqlite.OpenReadWrite)
			if err == nil {
				err = sqlitex.ExecuteTransient(conn, "pragma user_version = 999", nil)
			}
			if err != nil {
				d.t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				d.t.Fatal(err)
			}
			return []string{"a.txt", "--", "true"}
		}, 2, "was made by another build (it has schema 999, ours is ", "", nil},
		{"not a store", func(d *workspace) []string {
			d.write("a.txt", "a\n")
			d.write("notes.md", strings.Repeat("these are notes\n", 100))
			return []string{"a.txt", "--store", "sqlite://" + d.path("notes.md"), "--", "true"}
		}, 2, "notes.md is not a Nixie store: name another file", "", func(t *testing.T, d *workspace) {
			if d.read("notes.md") != strings.Repeat("these are notes\n", 100) {
				t.Error("the file was changed")
			}
		}},
		{"unknown scheme of the store", listed("a.txt", "a\n", "--store", "mysql://u:hunter2@h/d", "--", "true"), 2,
			`scheme "mysql" is unknown, known are sqlite, postgres and itemdir`, "", untouched},
		{"store without a scheme", listed("a.txt", "a\n", "--store", "store", "--", "true"), 2,
			`store "store" is not a URL: give one like sqlite:///path/to/file`, "", untouched},
	}
}

func badItems() []badInput {
	return []badInput{
		{"huge item", listed("a.jsonl", `{"id":1,"x":"`+strings.Repeat("x", nixie.MaxBody)+"\"}\n", "--", "true"), 1,
			"a.jsonl:1:1: the item has 1677723", "", untouched},
		{"huge item, --skip-bad", listed("a.jsonl", `{"id":1,"x":"`+strings.Repeat("x", nixie.MaxBody)+"\"}\n{\"id\":2}\n", "--skip-bad",
			"--", "true"), 5, "", "serialization a.jsonl:1:1: the item has 1677723", nil},
		{"largest item", listed("a.txt", strings.Repeat("x", nixie.MaxBody)+"\n", "--", "sh", "-c", "[ $(wc -c) = 16777216 ]"), 0, "", "",
			nil},
		{"largest item as an argument", listed("a.txt", strings.Repeat("x", nixie.MaxBody)+"\n", "--", "true", "{}"), 5, "",
			"validation arguments and environment are longer than the system allows", nil},
		{"NUL as an argument", listed("a.jsonl", `{"id":"n","x":"a\u0000b"}`+"\n", "--", "true", "{x}"), 5, "",
			"validation argument 1 holds a NUL byte, which no argument can: read the item from standard input", nil},
		{"NUL on standard input", listed("a.txt", "a\x00b\n", "--", "sh", "-c", `[ "$(od -An -c | tr -d ' ')" = 'a\0b' ]`), 0, "", "", nil},
		{"missing field", listed("a.jsonl", `{"id":"n"}`+"\n", "--", "true", "{url}"), 2, "the first item has no field for {url}", "",
			untouched},
		{"missing field of a later item", listed("a.jsonl", `{"id":"n","url":"u"}`+"\n"+`{"id":"m"}`+"\n", "--", "true", "{url}"), 5, "",
			`validation item has no field "url" for argument 1: `, nil},
		{"placeholder inside an argument", listed("a.txt", "a\n", "--", "sh", "-c", "rm {line}"), 2,
			"has the placeholder {line} inside a longer argument", "", untouched},
		{"invalid UTF-8 in JSON", listed("a.jsonl", "{\"id\":\"\xff\"}\n", "--", "true"), 2, "a.jsonl:1:8: byte 0xff is not valid UTF-8",
			"", untouched},
		{"invalid UTF-8 in lines", listed("a.txt", "\xff\xfe!\n", "--format", "lines", "--", "sh", "-c",
			`[ "$(printf %s "$1" | od -An -tx1 | tr -d ' ')" = fffe21 ]`, "sh", "{line}"), 0, "", "", nil},
		{"10 MiB of output", listed("a.txt", "a\n", "--max-attempts", "1", "--", "sh", "-c",
			"head -c 10485760 /dev/zero | tr '\\0' x | tee /dev/stderr; echo; echo end >&2; exit 1"), 5, "", "command-failed " +
			strings.Repeat("x", 1021) + "…", func(t *testing.T, d *workspace) {
			for _, a := range d.letter(d.letters("")[0].ID).History[0].Attachments {
				// Neither half of a cut line is kept: 8 KiB before the mark, 4 KiB after it.
				if gone := 8<<10 + 64 + 4<<10; len(a.Text) != nixie.MaxAttachment-gone {
					t.Errorf("attachment %s has %d bytes", a.Name, len(a.Text))
				}
			}
		}},
		{"ignores SIGTERM, leaves grandchildren", listed("a.txt", "a\n", "--max-attempts", "1", "--timeout", "100ms", "--", "sh", "-c",
			"trap '' TERM; (trap '' TERM; exec sleep 1000) & (exec sleep 1000) & wait; sleep 1000"), 5, "", "timeout timed out after 100ms",
			nil},
	}
}

func badFlags() []badInput {
	return []badInput{
		{"unknown flag", listed("a.txt", "a\n", "--parallels", "3", "--", "true"), 2, "unknown flag: --parallels", "", untouched},
		{"bad --on-item-failure", listed("a.txt", "a\n", "--on-item-failure", "bury", "--", "true"), 2,
			`on-item-failure is "bury": give dlq, retry, discard, stop or custom:COMMAND`, "", untouched},
		{"custom: without a command", listed("a.txt", "a\n", "--on-item-failure", "custom:", "--", "true"), 2,
			"on-item-failure: the command is empty: name a program and its arguments", "", untouched},
		{"custom: of no program", listed("a.txt", "a\n", "--on-item-failure", "custom:./none", "--", "true"), 2,
			`on-item-failure: command "./none" cannot be started: program not found`, "", untouched},
		{"custom: with quotes", listed("a.txt", "a\n", "--on-item-failure", "custom:sh -c 'exit 10'", "--", "true"), 2,
			"it is only split at blanks", "", untouched},
		{"bad --permanent-exit", listed("a.txt", "a\n", "--permanent-exit", "x", "--", "true"), 2,
			`--permanent-exit is "x": give whole numbers with commas between`, "", untouched},
		{"--permanent-exit 0", listed("a.txt", "a\n", "--permanent-exit", "3,0", "--", "true"), 2,
			"permanent-exit holds 0: give exit codes from 1 to 255", "", untouched},
		{"--parallel 0", listed("a.txt", "a\n", "--parallel", "0", "--", "true"), 2, "parallel is 0: give one from 1 to 1000", "",
			untouched},
		{"--max-attempts 0", listed("a.txt", "a\n", "--max-attempts", "0", "--", "true"), 2, `--max-attempts is "0": give a number from 1`,
			"", untouched},
		{"--max-attempts -1", listed("a.txt", "a\n", "--max-attempts", "-1", "--", "true"), 2,
			"max_attempts is none and nothing else ends the retries", "", untouched},
		{"--timeout -1s", listed("a.txt", "a\n", "--timeout", "-1s", "--", "true"), 2,
			"timeout is -1s: give a positive duration, or 0 for none", "", untouched},
		{"--backoff -1s", listed("a.txt", "a\n", "--backoff", "-1s", "--", "true"), 2,
			`--backoff is "-1s": backoff base is "-1s": give a duration`, "", untouched},
		{"--lease 1ms", listed("a.txt", "a\n", "--lease", "1ms", "--", "true"), 2, "lease is 1ms: give one from 100ms to 12h0m0s", "",
			untouched},
		{"--profile none", listed("a.txt", "a\n", "--profile", "none", "--", "true"), 2, `profile is "none": choose one of `, "",
			untouched},
		{"bad --format", listed("a.txt", "a\n", "--format", "xml", "--", "true"), 2, `format "xml" is unknown: give one of `, "",
			untouched},
		{"bad -o", listed("a.txt", "a\n", "-o", "yaml", "--", "true"), 2,
			`-o, --output is "yaml": choose one of table, wide, json, jsonl, csv`, "", untouched},
		{"control character in --job", listed("a.txt", "a\n", "--job", "a\x1b[2Jb", "--", "true"), 2,
			`job "a\x1b[2Jb" holds a control character: remove it`, "", untouched},
	}
}

func badDisks() []badInput {
	return []badInput{
		{"read-only folder", readOnly, 1, "cannot be ", "", nil},
		{"full disk from the start", func(d *workspace) []string {
			d.mount("full", "size=8m")
			return listed("a.txt", "a\n", "--store", "sqlite://"+d.path("full/s.db"), "--", "true")(d)
		}, 1, "MiB are kept in reserve for work under way: free some space, nothing was enqueued", "", nil},
		{"no room for a store", func(d *workspace) []string {
			d.mount("full", "size=32k")
			return listed("a.txt", "a\n", "--store", "sqlite://"+d.path("full/s.db"), "--", "true")(d)
		}, 1, "full/s.db is full: free some space and repeat", "", nil},
	}
}

// mount mounts a small file system for the test, or skips it; with NIXIE_TEST_REQUIRE set the test
// fails.
func (d *workspace) mount(name, options string) {
	d.t.Helper()
	if err := os.Mkdir(d.path(name), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", d.path(name), "tmpfs", 0, options); err != nil {
		if os.Getenv("NIXIE_TEST_REQUIRE") != "" {
			d.t.Fatalf("a small disk cannot be mounted: %v", err)
		}
		d.t.Skipf("a small disk cannot be mounted (%v): run as root", err)
	}
	d.t.Cleanup(func() {
		if err := syscall.Unmount(d.path(name), syscall.MNT_DETACH); err != nil {
			d.t.Error(err)
		}
	})
}

// readOnly makes a folder that cannot be written: by a mount for root, whom rights do not stop,
// else by rights.
func readOnly(d *workspace) []string {
	if os.Geteuid() == 0 {
		d.mount("ro", "size=1m,mode=755")
		if err := syscall.Mount("tmpfs", d.path("ro"), "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			d.t.Skipf("a disk cannot be made read-only (%v)", err)
		}
	} else if err := os.Mkdir(d.path("ro"), 0o500); err != nil {
		d.t.Fatal(err)
	}
	return listed("a.txt", "a\n", "--store", "sqlite://"+d.path("ro/s.db"), "--", "true")(d)
}

// TestShow6BadInput runs every row and prints the table.
func TestShow6BadInput(t *testing.T) {
	t.Parallel()
	play(t, badInputs())
}

func play(t *testing.T, rows []badInput) {
	t.Helper()
	shown := make([]string, len(rows))
	t.Cleanup(func() {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "input\texit\tmessage")
		for i, row := range rows {
			fmt.Fprintf(w, "%s\t%d\t%s\n", row.name, row.code, shown[i])
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		t.Log("\n" + b.String())
	})
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			r := d.nixie(row.code, append([]string{"run"}, row.given(d)...)...)
			d.noProcess()
			if strings.Contains(r.out+r.err, secret) {
				t.Errorf("the password is shown: %s%s", r.out, r.err)
			}
			shown[i] = message(t, d, &row, r)
			if row.after != nil {
				row.after(t, d)
			}
			if left, _ := filepath.Glob(d.path("state/nixie/*/*")); len(left) > 0 {
				t.Errorf("files of the run stay: %v", left)
			}
		})
	}
}

// message checks what a person is told, and returns it.
func message(t *testing.T, d *workspace, row *badInput, r done) string {
	t.Helper()
	var said []string
	for line := range strings.SplitSeq(r.err, "\n") {
		if text, ok := strings.CutPrefix(line, "nixie: "); ok && !strings.HasSuffix(text, "; trying again") {
			said = append(said, text)
		}
	}
	if strings.Contains(r.err, "goroutine ") {
		t.Errorf("a stack on stderr: %s", r.err)
	}
	switch {
	case row.says != "":
		if len(said) != 1 || !strings.Contains(said[0], row.says) {
			t.Fatalf("said %q, want one line with %q", said, row.says)
		}
		return said[0]
	case len(said) > 0:
		t.Errorf("said %q", said)
	}
	if row.dead == "" {
		return "(runs)"
	}
	letters := d.letters("")
	if len(letters) != 1 {
		t.Fatalf("%d letters, want 1", len(letters))
	}
	l := d.letter(letters[0].ID)
	text := l.Reason + " " + l.History[len(l.History)-1].Message
	if !strings.HasPrefix(text, row.dead) {
		t.Fatalf("letter %q, want %q", text, row.dead)
	}
	d.verify()
	text, _, _ = strings.Cut(text, "\n")
	return "letter: " + text[:min(len(text), 120)]
}
