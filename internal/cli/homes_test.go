//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job runs without a home, a terminal or a language, and where the home cannot be written, as
// long as its store is named. Without that, the answer says how to name one.
func TestHomes(t *testing.T) {
	t.Parallel()
	const advice = "set NIXIE_STORE, or give --store sqlite:///path/to/file"
	for _, row := range []struct {
		name string
		env  []string // with PATH and TMPDIR; $WORK is the folder of the test
		line string
		code int
		says string
	}{
		{"no home and no store", nil, "run a.txt -- true", 2, "no folder for the store: " + advice},
		{"no home and no store, to look", nil, "dlq list", 2, "no folder for the store: " + advice},
		{"no home", []string{"NIXIE_STORE=s.db"}, "run a.txt -- true", 0, "1 succeeded"},
		{"no home, to work", []string{"NIXIE_STORE=s.db"}, "work orders --drain -- true", 0, ""},
		{"no home, to look", []string{"NIXIE_STORE=s.db"}, "config print", 0, "$NIXIE_STORE"},
		{"a home that is not there", []string{"HOME=/proc/none"}, "run a.txt -- true", 1, advice},
		{"a home that is not there, with a store", []string{"HOME=/proc/none", "NIXIE_STORE=s.db"}, "run a.txt -- true", 0, "1 succeeded"},
		{"a home that cannot be written", []string{"HOME=$WORK/ro", "NIXIE_STORE=s.db"}, "run a.txt -- true", 0, "1 succeeded"},
		{"a home that cannot be written, with a hook", []string{"HOME=$WORK/ro", "NIXIE_STORE=s.db"},
			"redrive --all --pipe cat --reason x --yes", 0, ""},
		{"no store, and a home that cannot be written", []string{"HOME=$WORK/ro"}, "run a.txt -- true", 1, advice},
		{"a home", []string{"HOME=$WORK/home"}, "run a.txt -- true", 0, "store: sqlite://"},
		{"a chosen folder that cannot be written", []string{"XDG_STATE_HOME=$WORK/ro", "NIXIE_STORE=s.db"}, "run a.txt -- true", 1,
			"XDG_STATE_HOME names another"},
		{"no words of a terminal", []string{"NIXIE_STORE=s.db", "TERM=", "LANG=C", "LC_ALL=C", "COLUMNS="}, "run a.txt -- true", 0,
			"1 succeeded"},
		{"a terminal of no kind", []string{"NIXIE_STORE=s.db", "TERM=dumb", "COLUMNS=x"}, "dlq analyze", 0, "no letters"},
		{"no folder of temporary files", []string{"NIXIE_STORE=s.db", "TMPDIR=/proc/none"}, "run a.txt -- true", 1,
			"XDG_STATE_HOME names another"},
		{"the version", nil, "--version", 0, "nixie "},
		{"the help", nil, "run --help", 0, "Usage"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.write("a.txt", "a\n")
			d.nixie(0, "enqueue", "orders", "a.txt", "--store", d.path("s.db"))
			for _, name := range []string{"home", "tmp"} {
				if err := os.Mkdir(d.path(name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(strings.Join(row.env, " "), "$WORK/ro") {
				readOnly(d)
			}
			d.env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + d.path("tmp"), "GORACE=atexit_sleep_ms=0"}
			for _, v := range row.env {
				d.env = append(d.env, strings.ReplaceAll(v, "$WORK", d.dir))
			}
			r := d.nixie(row.code, strings.Fields(row.line)...)
			if text := r.out + r.err; !strings.Contains(text, row.says) || strings.Contains(text, "\x1b") {
				t.Errorf("said %q, want %q", text, row.says)
			}
			if left, _ := filepath.Glob(d.path("tmp/*/*/*")); len(left) > 0 {
				t.Errorf("files stay: %v", left)
			}
			text := strings.ReplaceAll(strings.TrimSpace(r.out+r.err), d.dir, "$WORK")
			first, _, _ := strings.Cut(text, "\n")
			t.Logf("%d  %s", r.code, first)
		})
	}
}
