package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
)

// policyCommand runs a command line without a terminal and without any environment.
func policyCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	code = Main(args, Streams{
		In: strings.NewReader(""), Out: &out, Err: &errs,
		Env: func(string) string { return "" }, Now: func() time.Time { return noon },
	})
	return code, out.String(), errs.String()
}

// split reads a command as it stands in the golden file: blanks part words,
// single quotes hold them together.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// columnsOnly makes the width of columns count for nothing.
func columnsOnly(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestSimulatePrintsWhatTheSourcesSay(t *testing.T) {
	golden, err := os.ReadFile("testdata/simulate.golden")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for block := range strings.SplitSeq(string(golden), "\n\n") {
		var command string
		var want []string
		for line := range strings.Lines(block) {
			switch {
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "$ nixie "):
				command = strings.TrimSpace(strings.TrimPrefix(line, "$ nixie "))
			default:
				want = append(want, line)
			}
		}
		if command == "" {
			continue
		}
		played++
		code, out, errs := policyCommand(t, split(command)...)
		if code != ExitOK || errs != "" {
			t.Errorf("%s: exit %d, %s", command, code, errs)
		}
		if got, want := columnsOnly(out), columnsOnly(strings.Join(want, "")); got != want {
			t.Errorf("%s prints\n%s\nwant\n%s", command, got, want)
		}
	}
	if least := 13 + len(policy.Profiles()); played < least {
		t.Errorf("%d commands in the golden file, want %d at least", played, least)
	}
}

func TestSimulateRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct{ args, word string }{
		{"--reason bad", `--reason is "bad"`},
		{"--class bad", `--class is "bad"`},
		{"--code bad", `--code is "bad"`},
		{"--profile bad", `profile is "bad"`},
		{"--backoff 'quadratic base=1s'", "backoff formula"},
		{"--id bad", "bad"},
		{"--max-attempts -7", `--max-attempts is "-7": give a number from 1`},
		{"--profile wink --compare", "compare"},
		{"extra", `"extra"`},
		{"-o xml", "choose one of table, wide, json, jsonl, csv"},
	} {
		code, out, errs := policyCommand(t, append([]string{"policy", "simulate"}, split(c.args)...)...)
		if code != ExitUsage || out != "" || !strings.Contains(errs, c.word) {
			t.Errorf("%s: exit %d, printed %q, said %q", c.args, code, out, errs)
		}
	}
}

func TestSimulateThrowsTheDiceOfAnID(t *testing.T) {
	args := []string{"policy", "simulate", "--id", "01920000-0000-7000-8000-000000000001", "-o", "json", "--exit", "1"}
	_, first, _ := policyCommand(t, args...)
	_, again, _ := policyCommand(t, args...)
	var steps []office.SimulatedView
	if err := json.Unmarshal([]byte(first), &steps); err != nil || len(steps) != 5 {
		t.Fatalf("%v in %s", err, first)
	}
	if first != again {
		t.Error("the same ID gave other waits")
	}
	exact := true
	for _, s := range steps[:4] {
		if s.WaitMS < s.LeastMS || s.WaitMS > s.MostMS || s.Reason != "command-failed" {
			t.Errorf("%+v", s)
		}
		exact = exact && s.WaitMS == s.MostMS
	}
	if exact {
		t.Error("the ID gave no jitter")
	}
}

func TestProfilesListsThemAll(t *testing.T) {
	code, out, errs := policyCommand(t, "policy", "profiles", "-o", "json")
	var views []office.ProfileView
	if err := json.Unmarshal([]byte(out), &views); code != ExitOK || err != nil {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	for i, name := range policy.Profiles() {
		if i >= len(views) || views[i].Name != name || views[i].About == "" {
			t.Errorf("profile %d is not %s: %s", i+1, name, out)
		}
	}
	if q := views[3]; q.InClaim != "5 runs within 2m, 100ms ×2 up to 30s, 0s to 50ms more as jitter" || q.OnDuplicate != "error" ||
		q.MaxAttempts != 1 {
		t.Errorf("pgqueuer is %+v", q)
	}
	if w := views[4]; w.InClaim != "10 extensions" || w.OnDuplicate != "existing" || w.Breaker != "none" {
		t.Errorf("wink is %+v", w)
	}
	if p := views[5]; p.Breaker != "5 failures open it for 30s, 3 successes close it, 3 at once meanwhile" {
		t.Errorf("prodigy is %+v", p)
	}
}
