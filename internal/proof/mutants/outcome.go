package main

import (
	"bytes"
	"strings"
)

// outcome names the end of a run of tests.
type outcome struct {
	ran    int
	clean  bool   // the program said that all is well
	failed string // the first test that failed
	hung   string // the test that ran when the time was over
	report string // what was written up to there, from the beginning of that test
}

func (o outcome) passed() bool { return o.clean && o.ran > 0 && o.failed == "" }

func (o outcome) String() string {
	switch {
	case o.failed != "":
		return "found by " + o.failed
	case o.hung != "":
		return "SURVIVED: " + o.hung + " hangs"
	case o.ran == 0:
		return "SURVIVED: no test ran"
	case !o.clean:
		return "SURVIVED: the tests ended without a result"
	}
	return "SURVIVED"
}

// reader makes an outcome of what a test program writes with -test.v=test2json:
// a verdict of each test as soon as it has one, those inside others first. It is
// used by one goroutine.
type reader struct {
	onFailure func() // called at the first

	o      outcome
	line   []byte // that has no end yet
	latest string // the test that wrote last
	report strings.Builder
	panic  bool
}

// Write implements io.Writer.
func (r *reader) Write(p []byte) (int, error) {
	r.line = append(r.line, p...)
	for {
		line, rest, whole := bytes.Cut(r.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		r.take(string(line))
		r.line = rest
	}
}

// marker comes before the lines of the test program itself.
const marker = "\x16"

func (r *reader) take(line string) {
	if r.o.failed != "" || r.o.hung != "" {
		return
	}
	line = strings.TrimLeft(line, marker+" ")
	for _, sign := range [...]string{"=== RUN ", "=== CONT ", "=== NAME "} {
		if name, ok := strings.CutPrefix(line, sign); ok && strings.TrimSpace(name) != r.latest {
			r.latest = strings.TrimSpace(name)
			r.report.Reset()
		}
	}
	if strings.HasPrefix(line, "=== RUN ") {
		r.o.ran++
	}
	r.report.WriteString(line + "\n")
	switch {
	case strings.HasPrefix(line, "--- FAIL: "):
		r.o.failed, _, _ = strings.Cut(strings.TrimPrefix(line, "--- FAIL: "), " ")
		r.onFailure()
	case strings.HasPrefix(line, "panic: test timed out"):
		r.o.hung = r.latest
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		r.panic = true
	}
}

// end is the outcome when the program has ended. A panic outside the goroutine
// of a test ends it without a verdict: that is a find of the test that ran.
func (r *reader) end(clean bool) outcome {
	r.o.clean, r.o.report = clean, r.report.String()
	if !clean && r.panic && r.o.failed == "" && r.o.hung == "" {
		r.o.failed = r.latest
	}
	return r.o
}
