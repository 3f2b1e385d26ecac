// Package matchtest is what every programme of package match passes.
package matchtest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
)

// Once measures every library in every scenario with few tasks, with all checks
// on, and gives each result to look.
func Once(t *testing.T, p *match.Programme, look func(contest.Scenario, *contest.Entrant, *contest.Result)) {
	t.Helper()
	var out, log bytes.Buffer
	folder := t.TempDir()
	if err := p.Run(t.Context(), []string{"-rounds", "1", "-size", "100", "-report", "-json", "-dir", folder}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var report struct {
		Targets []json.RawMessage
		Results map[string][]contest.Result
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Scenarios {
		for _, e := range p.Entrants {
			list := report.Results[string(s)+" "+e.Name]
			if !e.Plays(s) {
				continue
			}
			if len(list) != 1 || list[0].Wall <= 0 || list[0].CPU <= 0 || list[0].Memory <= 0 || list[0].File <= 0 {
				t.Errorf("%s, %s: %+v", s, e.Name, list)
				continue
			}
			if look != nil {
				look(s, &e, &list[0])
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
