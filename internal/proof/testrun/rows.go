package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// required rows of the acceptance list, each of which is a test or subtest with
// its number in the name, as in R11_NoTwoHolders.
func requiredRows() []string {
	return []string{
		"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R18", "R19",
		"R20", "R21", "R22", "R23", "R24", "R25", "R26", "R27", "R28", "R29", "R30", "R31", "R32", "R33", "R35", "R36",
		"R39", "R40", "R41", "R42", "R43", "R44", "R45", "R46", "R52", "R59",
	}
}

// rowName finds the row in the last part of a test's name: parts of a row's own
// test are not listed, its end says how they ended.
var rowName = regexp.MustCompile(`(?:^Test|/)(R[0-9]+)_[^/]*$`)

// rows collects the results of tests that stand for a row.
type rows struct {
	tests map[string][]string // "ok package test", by row
	bad   map[string]bool     // rows with a test that did not pass
}

func newRows() *rows { return &rows{tests: map[string][]string{}, bad: map[string]bool{}} }

// note takes one event; only ends of tests that name a row count.
func (r *rows) note(e event) {
	word := map[string]string{"pass": "ok", "fail": "FAILED", "skip": "skipped"}[e.Action]
	match := rowName.FindStringSubmatch(e.Test)
	if word == "" || match == nil {
		return
	}
	row := match[1]
	r.tests[row] = append(r.tests[row], fmt.Sprintf("%s %s %s", word, strings.TrimPrefix(e.Package, modulePrefix), e.Test))
	if e.Action != "pass" {
		r.bad[row] = true
	}
}

// print writes one line for each test of a required row, and is an error when a
// row has none or one did not pass.
func (r *rows) print(out io.Writer) error {
	var wrong []string
	for _, row := range requiredRows() {
		if len(r.tests[row]) == 0 {
			fmt.Fprintf(out, "%s MISSING\n", row)
		}
		for _, line := range r.tests[row] {
			fmt.Fprintf(out, "%s %s\n", row, line)
		}
		if len(r.tests[row]) == 0 || r.bad[row] {
			wrong = append(wrong, row)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("rows without a passing test: %s", strings.Join(wrong, ", "))
	}
	return nil
}
