package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/cli"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestMain lets the test binary be nixie itself, alone or weighed, its supervisor,
// and the program that adds items alongside it, by the name under which it is started.
func TestMain(m *testing.M) {
	if command.GuardMain() {
		return
	}
	switch filepath.Base(os.Args[0]) {
	case "nixie":
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	case "weighed":
		os.Exit(weighed())
	case "adder":
		addItems()
		return
	}
	os.Exit(runTests(m))
}

// runTests puts a folder with our programs before the others in PATH.
func runTests(m *testing.M) int {
	time.Local = time.UTC // tables have the time of the machine
	bin, err := os.MkdirTemp("", "nixie-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin) //nolint:errcheck // a temporary folder
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"nixie", "weighed", "adder"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			panic(err)
		}
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	return m.Run()
}

// workspace is a folder with a store of its own, in which nixie is run.
type workspace struct {
	t   *testing.T
	dir string
	env []string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	dir := t.TempDir()
	return &workspace{t, dir, append(os.Environ(),
		"NIXIE_STORE=sqlite://"+filepath.Join(dir, "nixie.db"), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "HOME="+dir, "NO_COLOR=1",
		"NIXIE_ACTOR=tester",
		"GORACE=atexit_sleep_ms=0")}
}

func (d *workspace) path(name string) string { return filepath.Join(d.dir, name) }

func (d *workspace) write(name, text string) {
	d.t.Helper()
	// A child that another test forks meanwhile would hold the file open, and a program that is
	// open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(d.path(name), []byte(text), 0o700); err != nil {
		d.t.Fatal(err)
	}
}

func (d *workspace) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *workspace) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), name, args...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// done has the end of a process.
type done struct {
	code     int
	out, err string
}

func (d *workspace) finish(cmd *exec.Cmd) done {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		d.t.Fatalf("%s: %v", cmd, err)
	}
	return done{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// nixie runs a command line that has to end with the code.
func (d *workspace) nixie(code int, args ...string) done {
	d.t.Helper()
	return d.nixieIn("", code, args...)
}

func (d *workspace) nixieIn(stdin string, code int, args ...string) done {
	d.t.Helper()
	cmd := d.command("nixie", args...)
	cmd.Stdin = strings.NewReader(stdin)
	r := d.finish(cmd)
	if r.code != code {
		d.t.Fatalf("nixie %q: exit %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	return r
}

// summary is the JSON of nixie run; other fields are refused.
type summary struct {
	Job        string `json:"job"`
	Items      int    `json:"items"`
	Succeeded  int    `json:"succeeded"`
	Dead       int    `json:"dead"`
	Discarded  int    `json:"discarded"`
	Unfinished int    `json:"unfinished"`
	Attempts   int    `json:"attempts"`
	Groups     []struct {
		Signature   string `json:"signature"`
		Fingerprint string `json:"fingerprint"`
		Count       int    `json:"count"`
		Reason      string `json:"reason"`
		Text        string `json:"example_text"`
	} `json:"groups"`
	Ended string `json:"ended"`
	Why   string `json:"why"`
}

func (d *workspace) summary(r done) summary {
	d.t.Helper()
	var s summary
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		d.t.Fatalf("summary: %v\n%s%s", err, r.out, r.err)
	}
	return s
}

// run is nixie run with -o json and without waiting; command stands behind --.
func (d *workspace) run(code int, args ...string) summary {
	d.t.Helper()
	return d.summary(d.nixie(code, append([]string{"run", "-o", "json", "--backoff", "0"}, args...)...))
}

// ledger is the lines of a file that commands append to.
func (d *workspace) ledger(name string) []string {
	d.t.Helper()
	return strings.Split(strings.TrimSuffix(d.read(name), "\n"), "\n")
}

// times counts equal lines.
func times(lines []string) map[string]int {
	n := map[string]int{}
	for _, line := range lines {
		if line != "" {
			n[line]++
		}
	}
	return n
}

// letter is a letter as nixie dlq show prints it, as far as tests look.
type letter struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	Status   string `json:"status"`
	Cause    string `json:"cause"`
	Reason   string `json:"reason"`
	Class    string `json:"class"`
	Attempts int    `json:"attempts"`
	Crashes  int    `json:"crashes"`
	Redrives int    `json:"redrives"`
	Message  struct {
		Body       string `json:"body"`
		BodyBase64 string `json:"body_base64"`
	} `json:"message"`
	History []struct {
		Attempt     int      `json:"attempt"`
		Generation  int      `json:"generation"`
		Class       string   `json:"class"`
		Reason      string   `json:"reason"`
		Message     string   `json:"message"`
		ExitCode    *int     `json:"exit_code"`
		Decision    string   `json:"decision"`
		Steps       []string `json:"steps"`
		Attachments []struct {
			Name string `json:"name"`
			Text string `json:"text"`
		} `json:"attachments"`
	} `json:"history"`
}

func (d *workspace) letter(id string) letter {
	d.t.Helper()
	r := d.nixie(0, "dlq", "show", id, "-o", "json")
	var l letter
	if err := json.Unmarshal([]byte(r.out), &l); err != nil {
		d.t.Fatalf("%v\n%s", err, r.out)
	}
	return l
}

func (d *workspace) letters(filter string) []letter {
	d.t.Helper()
	args := []string{"dlq", "list", "-o", "jsonl", "--limit", "0"}
	if filter != "" {
		args = append(args, "--filter", filter)
	}
	return d.decodeLetters(d.nixie(0, args...))
}

func (d *workspace) decodeLetters(r done) []letter {
	d.t.Helper()
	var all []letter
	for decoder := json.NewDecoder(strings.NewReader(r.out)); decoder.More(); {
		var l letter
		if err := decoder.Decode(&l); err != nil {
			d.t.Fatalf("%v\n%s", err, r.out)
		}
		all = append(all, l)
	}
	return all
}

// verify fails the test when the store breaks an invariant.
func (d *workspace) verify() {
	d.t.Helper()
	if r := d.finish(d.command("nixie", "verify", "-o", "json")); r.code != 0 {
		d.t.Fatalf("verify: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// processes lists the live processes, without zombies, whose environment has the folder of this
// workspace.
func (d *workspace) processes() []string {
	d.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Skip("there is no /proc to look for processes in")
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(environ, []byte(d.dir)) {
			continue // ended, or a zombie, which has no environment any more
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && len(line) > 0 {
			found = append(found, fmt.Sprintf("%d %q", pid, line))
		}
	}
	return found
}

// noProcess waits a little for the last process to go.
func (d *workspace) noProcess() {
	d.t.Helper()
	var left []string
	if !within(10*time.Second, func() bool { left = d.processes(); return len(left) == 0 }) {
		d.t.Fatalf("processes are left: %v", left)
	}
}

// within polls for what another process does, which nothing else announces.
func within(limit time.Duration, holds func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			return holds()
		}
	}
	return true
}

// addItems is a second program that imports the library: adder STORE QUEUE N.
func addItems() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "adder:", err)
			os.Exit(1)
		}
	}
	st, err := sqlite.Open(os.Args[1], sqlite.Options{})
	fail(err)
	n, err := strconv.Atoi(os.Args[3])
	fail(err)
	type order struct {
		ID string `json:"id"`
	}
	kind := nixie.NewType[order]("item")
	for i := range n {
		id := fmt.Sprintf("added-%d", i)
		_, err := kind.Enqueue(context.Background(), st, order{id}, nixie.Queue(os.Args[2]), nixie.Key(id), nixie.DedupeKey(id))
		fail(err)
	}
	fail(st.Close())
}
