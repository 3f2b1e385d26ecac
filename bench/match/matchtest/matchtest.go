// Package matchtest has the tests that every programme of package match must pass.
package matchtest

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
)

// Once measures every library in every scenario with few tasks, with all checks
// on, and gives each result to check.
func Once(t *testing.T, p *match.Programme, check func(contest.Scenario, *contest.Entrant, *contest.Result)) {
	t.Helper()
	var out, log bytes.Buffer
	folder := t.TempDir()
	args := []string{"-rounds", "1", "-size", "100", "-report", "-json", "-dir", folder, "-scenarios", all(p)}
	if len(p.Asked) > 0 {
		args = append(args, "-burden", "50")
	}
	if err := p.Run(t.Context(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var report struct {
		Targets []json.RawMessage
		Results map[string][]contest.Result
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(p.Scenarios, p.Asked) {
		for _, e := range p.Entrants {
			list := report.Results[string(s)+" "+e.Name]
			if !e.Plays(s) {
				continue
			}
			if len(list) != 1 || list[0].Wall <= 0 || list[0].CPU <= 0 || list[0].Memory <= 0 || list[0].File <= 0 {
				t.Errorf("%s, %s: %+v", s, e.Name, list)
				continue
			}
			if check != nil {
				check(s, &e, &list[0])
			}
		}
	}
	if len(report.Targets) != len(p.Targets) {
		t.Errorf("%d targets, not %d", len(report.Targets), len(p.Targets))
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Steady puts a short constant load on Nixie.
func Steady(t *testing.T, p *match.Programme) {
	t.Helper()
	var out, log bytes.Buffer
	args := []string{"-steady", "300ms", "-rate", "1000", "-scenarios", string(contest.Drain), "-libraries", "nixie", "-dir", t.TempDir()}
	if err := p.Run(t.Context(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if !strings.Contains(out.String(), "Every message was handled") {
		t.Error(out.String())
	}
}

// all names every scenario.
func all(p *match.Programme) string {
	var names []string
	for _, s := range slices.Concat(p.Scenarios, p.Asked) {
		names = append(names, string(s))
	}
	return strings.Join(names, ",")
}
