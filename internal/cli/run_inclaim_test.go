//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// flaky fails its first runs of each item, and notes each run.
const flaky = `echo "$0 $NIXIE_ATTEMPT" >> ledger; [ $(grep -c "^$0 " ledger) -gt 3 ]`

// Further runs under one claim are one attempt: of the message, of the breaker and of the letter.
func TestRunInClaim(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\n")
	inClaim := []string{"run", "items.txt", "-o", "json", "--no-output", "-p", "1", "--in-claim", "attempts=4 base=1ms max-time=1m",
		"--max-attempts", "1", "--breaker", "2,1,1h,1", "--halt-after", "0"}
	s := d.summary(d.nixie(0, append(inClaim, "--job", "heals", "--", "sh", "-c", flaky, "{line}")...))
	if ran := times(d.ledger("ledger")); s.Succeeded != 2 || ran["a 1"] != 4 || ran["b 1"] != 4 {
		t.Errorf("%+v, ran %v", s, ran)
	}

	// Three runs are not enough: one failure in the letter, of one attempt.
	d.write("ledger", "")
	few := append([]string{}, inClaim...)
	few[8] = "attempts=3 base=1ms"
	s = d.summary(d.nixie(5, append(few, "--job", "dies", "--", "sh", "-c", strings.Replace(flaky, "-gt 3", "-gt 9", 1), "{line}")...))
	if ran := times(d.ledger("ledger")); s.Dead != 2 || ran["a 1"] != 3 || ran["b 1"] != 3 {
		t.Errorf("%+v, ran %v", s, ran)
	}
	for _, l := range d.letters("queue:dies") {
		if whole := d.letter(l.ID); len(whole.History) != 1 || whole.Attempts != 1 {
			t.Errorf("letter %+v", whole)
		}
	}

	// The time of all runs together is bounded.
	d.write("ledger", "")
	s = d.summary(d.nixie(5, "run", "items.txt", "-o", "json", "--no-output", "-p", "2", "--in-claim", "attempts=9 max-time=300ms",
		"--max-attempts", "1", "--job", "late", "--", "sh", "-c", "echo x >> ledger; exec sleep 60"))
	if len(d.ledger("ledger")) != 2 || s.Groups[0].Reason != "timeout" {
		t.Errorf("%+v, ran %v", s, d.ledger("ledger"))
	}
	d.verify()
}

// The setting of a queue holds for those that work on it, and a flag is stronger.
func TestQueueInClaim(t *testing.T) {
	t.Parallel()
	for flag, runs := range map[string]int{"": 3, "none": 1} {
		d := newWorkspace(t)
		d.nixie(0, "queue", "set", "q", "in-claim=attempts=3 base=1ms", "max-attempts=1", "--reason", "it hiccups")
		if out := d.nixie(0, "queue", "show", "q").out; !strings.Contains(out, "attempts=3 base=1ms (set)") {
			t.Error(out)
		}
		if out := d.nixie(0, "policy", "show", "--queue", "q").out; !strings.Contains(out, "3 runs, 1ms ×2 up to 15m") {
			t.Error(out)
		}
		d.nixie(0, "enqueue", "q", "--body", "x")
		args := []string{"work", "q", "--drain", "--no-output"}
		if flag != "" {
			args = append(args, "--in-claim", flag)
		}
		d.nixie(5, append(args, "--", "sh", "-c", "echo x >> ledger; exit 3")...)
		if n := len(d.ledger("ledger")); n != runs {
			t.Errorf("--in-claim %q: %d runs, want %d", flag, n, runs)
		}
	}
}

// In a map each run has a clean worktree. What was kept of one goes when a later one succeeds.
func TestMapInClaim(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(2)
	script := `echo "$0" >> ` + d.path("ledger") + `; [ -z "$(git status --porcelain)" ] || exit 9; echo half > "$0"; ` +
		`[ $(grep -c "^$0$" ` + d.path("ledger") + `) -gt 2 ] || exit 3; ` + change
	d.nixie(0, mapRun([]string{"-p", "1", "--max-attempts", "1", "--in-claim", "attempts=3 base=1ms"}, script)...)
	if ran := times(d.ledger("ledger")); fmt.Sprint(ran) != "map[f0:3 f1:3]" {
		t.Errorf("ran %v", ran)
	}
	if kept := d.nixie(0, "map", "kept", "--job", "j", "-o", "csv").out; strings.Count(kept, "\n") > 1 {
		t.Errorf("kept: %s", kept)
	}
	if refs := d.git("for-each-ref", "refs/heads/nixie-attempts"); refs != "" {
		t.Errorf("left: %s", refs)
	}
}
