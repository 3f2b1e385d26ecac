package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// tally counts results and shows what a person needs: the runner's line of each
// package and everything about what failed. Several streams may be read at once.
type tally struct {
	mu                      sync.Mutex // held for each event
	out                     io.Writer
	passed, failed, skipped int
	rows                    *rows
	reports                 *reports
	pending                 map[string]map[string]*strings.Builder // what a test wrote, by package and test
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, rows: newRows(), reports: newReports(), pending: map[string]map[string]*strings.Builder{}}
}

// read counts a stream of events to its end, and returns how many of its tests failed.
func (t *tally) read(r io.Reader) (failed int, err error) {
	for dec := json.NewDecoder(r); ; {
		var e event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return failed, nil
		}
		if err != nil {
			return failed, fmt.Errorf("read what go test says: %w", err)
		}
		failed += t.count(e)
	}
}

// count counts one event, and returns how many tests failed by it.
func (t *tally) count(e event) (failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.failed
	defer func() { failed = t.failed - before }()
	t.rows.note(e)
	t.reports.note(e)
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		t.keep(e)
	case "run":
		t.written(e.Package, e.Test)
	case "pass":
		if e.Test != "" {
			t.passed++
		}
		t.drop(e)
	case "skip":
		if e.Test != "" {
			t.skipped++
			fmt.Fprintf(t.out, "skipped %s (%s): %s\n", e.Test, e.Package, reason(t.written(e.Package, e.Test).String()))
		}
		t.drop(e)
	case "fail":
		t.fail(e)
	}
	return 0
}

// keep holds back what a test writes until it is known how it ends.
func (t *tally) keep(e event) {
	t.written(e.Package, e.Test).WriteString(e.Output)
	closing := strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t")
	if e.Test == "" && closing {
		fmt.Fprint(t.out, e.Output)
	}
}

func (t *tally) written(pkg, test string) *strings.Builder {
	if t.pending[pkg] == nil {
		t.pending[pkg] = map[string]*strings.Builder{}
	}
	if t.pending[pkg][test] == nil {
		t.pending[pkg][test] = &strings.Builder{}
	}
	return t.pending[pkg][test]
}

func (t *tally) drop(e event) {
	if e.Test == "" {
		delete(t.pending, e.Package)
	} else {
		delete(t.pending[e.Package], e.Test)
	}
}

// fail counts a failed test; or for a failed package the tests that have no
// result because the process ended, or itself if no test of it failed.
func (t *tally) fail(e event) {
	if e.Test != "" {
		t.failed++
		fmt.Fprint(t.out, t.written(e.Package, e.Test))
		t.drop(e)
		t.written(e.Package, "").WriteString("--- FAIL: " + e.Test + "\n")
		return
	}
	text := t.written(e.Package, "").String()
	unfinished := 0
	for _, test := range slices.Sorted(maps.Keys(t.pending[e.Package])) {
		if test != "" {
			unfinished++
			fmt.Fprintf(t.out, "%s--- NO RESULT: %s (%s)\n", t.written(e.Package, test), test, e.Package)
		}
	}
	if unfinished == 0 && !strings.Contains(text, "--- FAIL: ") {
		unfinished = 1
		fmt.Fprint(t.out, text)
	}
	t.failed += unfinished
	t.drop(e)
}

// reason is the text that a skipped test gave.
func reason(written string) string {
	for line := range strings.Lines(written) {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}

// close prints the sum; it is an error if a test failed or none ran.
func (t *tally) close() error {
	if t.skipped > 0 {
		fmt.Fprintf(t.out, "%d skipped\n", t.skipped)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed\n", t.passed, t.failed)
	switch {
	case t.failed > 0:
		return errors.New("tests failed")
	case t.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}
