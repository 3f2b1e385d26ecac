package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/policy"
)

// TestOneLetterHasOneGroup lets messages die of what real tools print and of errors with stacks. A
// worker, the adoption of the letter from a channel, the import of its item and a regroup of it as
// an earlier build kept it name one group.
func TestOneLetterHasOneGroup(t *testing.T) {
	outputs, stacks := printed(t, "causes"), printed(t, "stacks")
	p, err := policy.New(policy.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		user := rapid.StringMatching(`[a-z]{3,9}`).Draw(t, "user")
		d := &nixie.Delivery{Message: nixie.Message{
			ID: nixie.ID{6: 0x70, 8: 0x80, 15: 1}, Queue: "q", Type: "item", Key: "k", Body: fmt.Appendf(nil, `{"user":%q,"n":4711}`, user),
			Attempts: 1, Deliveries: 1, Generation: 1, EnqueuedAt: noon,
		}}
		var cause error
		older := "" // its text as an earlier build made it
		if rapid.Bool().Draw(t, "a command") {
			r := commandResult(t, rapid.SampledFrom(outputs).Draw(t, "outputs"), user)
			cause, older = r.Err(nil), olderText(&r)
		} else {
			text := rapid.SampledFrom([]string{"no account of " + user, "quota of 4711 is used up", "refused"}).Draw(t, "text")
			cause = nixie.WithEvidence(errors.New(text), nixie.Failure{Stack: rapid.SampledFrom(append(stacks, "")).Draw(t, "stack")})
		}
		if inner := cause; rapid.Bool().Draw(t, "in a step") {
			cause = new(nixie.Delivery).Step("fetch", func() error { return inner })
			if older != "" {
				older = "fetch: " + older
			}
		}
		l := letterOf(t, p, d, cause)
		switch rapid.IntRange(0, 3).Draw(t, "then") {
		case 0:
			l.History = append(l.History, l.History[0])
		case 1:
			diesAtTheDoor(t, p, d, &l)
		}

		again := l
		again.Fingerprint = "v2-0123456789abcdef"
		sameGroup(t, "regrouped", again, l)
		if f := l.History[0]; older != "" && len(l.History) == 1 {
			f.Text = older
			if !strings.Contains(older, "killed by") && !strings.Contains(older, "timed out") {
				f.Class, f.Reason = policy.OfExit(*f.ExitCode)
			}
			again.History = []nixie.Failure{f}
			sameGroup(t, "regrouped, as an earlier build kept it", again, l)
		}

		adopted := broker.Adopted("kafka", &broker.Record{Channel: "q.dlq", Value: l.Message.Body, Headers: broker.LetterHeaders(&l)}, "")
		if len(l.History) == 1 && len(l.History[0].Stack) < 8<<10 || l.History[0].Stack == "" { // what its headers have whole
			sameGroup(t, "adopted", adopted, l)
		}
		again = adopted
		again.Fingerprint = "v2-0123456789abcdef"
		sameGroup(t, "adopted and regrouped", again, adopted)

		item := importedItem(t, &l)
		again = item
		again.Fingerprint = "v2-0123456789abcdef"
		sameGroup(t, "imported and regrouped", again, item)
	})
}

// printed reads what real programs print: the parts of the files of a folder.
func printed(t *testing.T, folder string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../policy/testdata", folder, "*.txt"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files of %s: %v", len(files), folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq("\n"+string(data), "\n=== ") {
			if _, text, _ := strings.Cut(part, "\n"); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

// commandResult ends a command with some outputs.
func commandResult(t *rapid.T, sample, user string) command.Result {
	stderr, stdout, _ := strings.Cut("\n"+sample, "\n--- stdout\n")
	if rapid.Bool().Draw(t, "about the item") {
		stderr += "\nError: no account of " + user + "\n"
	}
	r := command.Result{Program: "tool", ExitCode: rapid.SampledFrom([]int{1, 2, 75, 139}).Draw(t, "exit"),
		Stderr: command.Tail{Data: []byte(strings.TrimPrefix(stderr, "\n"))}, Stdout: command.Tail{Data: []byte(stdout)}}
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		r.TimedOut, r.Timeout, r.ExitCode = true, time.Second, 143
	case 1:
		r.Signal, r.ExitCode = syscall.SIGSEGV, 139
	}
	return r
}

// olderText is the text that builds of before gave the failure of a command: by the last line of
// standard error.
func olderText(r *command.Result) string {
	data := bytes.TrimSpace(r.Stderr.Data)
	line := strings.TrimSpace(string(data[bytes.LastIndexAny(data, "\n\r")+1:]))
	how := ""
	switch {
	case r.TimedOut:
		how = "timed out after 1s"
	case r.Signal != 0:
		how = "killed by signal 11 (segmentation fault)"
	case line == "":
		return "exit status " + strconv.Itoa(r.ExitCode)
	default:
		return line
	}
	if line == "" {
		return how
	}
	return how + ": " + line
}

// letterOf lets a worker's policy bury a delivery.
func letterOf(t *rapid.T, p *policy.Policy, d *nixie.Delivery, cause error) nixie.Letter {
	f := p.Diagnose(d, nixie.Verdict(nixie.Bury, cause), policy.Attempt{StartedAt: noon, FailedAt: noon.Add(time.Second)})
	st := p.Decide(d, f, noon.Add(time.Second))
	if st.Burial == nil {
		t.Fatalf("not buried: %+v", st)
	}
	died := *st.Failure
	died.Err = nil
	m := d.Message
	m.State, m.LastFailure, m.LastReason = nixie.Dead, died.Text, died.Reason
	return nixie.Letter{
		ID: nixie.ID{6: 0x70, 8: 0x80, 15: 2}, Message: m, History: []nixie.Failure{died}, Cause: st.Burial.Cause, Class: died.Class,
		Reason: died.Reason, Signature: st.Burial.Signature, Fingerprint: st.Burial.Fingerprint, Status: st.Burial.Status,
		FirstFailedAt: died.FailedAt, LastFailedAt: died.FailedAt, DiedAt: died.FailedAt,
	}
}

// diesAtTheDoor lets the message of a letter die of a limit instead, after the failure that it has.
func diesAtTheDoor(t *rapid.T, p *policy.Policy, d *nixie.Delivery, l *nixie.Letter) {
	again := *d
	again.Attempts, again.LastReason = 2, l.Reason
	f := p.Admit(&again, noon.Add(time.Minute))
	policy.Recall(f, func() *nixie.Failure { return &l.History[0] })
	st := p.Decide(&again, f, noon.Add(time.Minute))
	if st.Burial == nil || st.Burial.Fingerprint != l.Fingerprint {
		t.Fatalf("at the door: %+v", st)
	}
	died := *st.Failure
	died.Err = nil
	l.History = append(l.History, died)
	l.Class, l.Reason, l.Cause = died.Class, died.Reason, st.Burial.Cause
}

// importedItem writes a letter as an item of a job and reads it.
func importedItem(t *rapid.T, l *nixie.Letter) nixie.Letter {
	item, err := itemfile.ItemOf(l)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(item)
	}
	var read nixie.Letter
	if err == nil {
		read, err = itemfile.Read(raw, "q", "job")
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func sameGroup(t *rapid.T, how string, got, want nixie.Letter) {
	label, fingerprint := policy.GroupOf(&got)
	if label != want.Signature || fingerprint != want.Fingerprint {
		t.Fatalf("%s the letter is in group %s %q, not in %s %q:\n%q\n%q", how, fingerprint, label, want.Fingerprint, want.Signature,
			got.History[len(got.History)-1].Text, want.History[len(want.History)-1].Text)
	}
}
