//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// worked is the JSON of nixie work.
type worked struct {
	Queues                                                                  []string
	Attempts, Succeeded, Retried, Dead, Discarded, Ready, Scheduled, Leased int
}

func (d *workspace) worked(text string) (w worked) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		d.t.Fatalf("%v in %q", err, text)
	}
	return w
}

// R52: drain mode ends with 0 when only future items remain: what was put off
// when it was enqueued, and what waits for a retry.
func TestR52_DrainEndsWhenOnlyFutureItemsRemain(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("lines.jsonl", `{"body":"1"}`+"\n"+`{"body":"2"}`+"\n"+`{"body":"later","delay":"1h"}`+"\n"+`{"body":"fails"}`+"\n")
	d.nixie(0, "enqueue", "q", "--jsonl", "lines.jsonl")
	got := d.worked(d.nixie(0, "work", "q", "--drain", "--backoff", "15m", "--max-attempts", "3", "-o", "json", "--", "sh", "-c",
		`read body; [ "$body" != fails ]`).out)
	if got.Succeeded != 2 || got.Retried != 1 || got.Dead != 0 || got.Ready != 0 || got.Scheduled != 2 || got.Leased != 0 {
		t.Errorf("%+v", got)
	}
	d.nixie(0, "work", "q", "none", "--drain", "--", "false")
	d.nixie(0, "enqueue", "q", "--body", "dies")
	d.nixie(5, "work", "q", "--drain", "--max-attempts", "1", "--", "false")
	d.verify()
}

// A worker without an end stops when it is told to, as a service should: what it
// has begun it finishes, what it has not begun goes back untouched.
func TestWorkStops(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) { workStops(t, sig) })
	}
}

func workStops(t *testing.T, sig os.Signal) {
	heard(t, syscall.SIGHUP)
	d := newWorkspace(t)
	d.write("lines.jsonl", strings.Repeat("{}\n", 6))
	d.nixie(0, "enqueue", "q", "--jsonl", "lines.jsonl")
	cmd := d.running(2, "work", "q", "-p", "2", "-o", "json", "--", "sh", "-c",
		`echo "$NIXIE_MESSAGE_ID" >> ledger; until [ -e go ]; do sleep 0.01; done; echo >> finished`)
	d.signal(cmd, sig)
	if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the signal is not noticed")
	}
	d.write("go", "")
	if code := ended(t, cmd); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, d.read("out"), d.read("err"))
	}
	got := d.worked(d.read("out"))
	if got.Succeeded != 2 || got.Attempts != 2 || got.Ready != 4 || got.Leased != 0 || len(d.ledger("finished")) != 2 {
		t.Errorf("%+v", got)
	}
	d.noProcess()
	if got := d.worked(d.nixie(0, "work", "q", "--drain", "-o", "json", "--", "sh", "-c",
		`[ "$NIXIE_ATTEMPT" = 1 ]`).out); got.Succeeded != 4 || got.Attempts != 4 {
		t.Errorf("the next worker: %+v", got)
	}
	d.verify()
}

// The second signal ends commands that go on; their messages go back, and an
// end that was asked for was not reached.
func TestWorkEndedInTheMiddle(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.nixie(0, "enqueue", "q", "--body", "x")
	cmd := d.running(1, "work", "q", "--until-empty", "-o", "json", "--", "sh", "-c", `echo >> ledger; sleep 1000`)
	d.signal(cmd, syscall.SIGTERM)
	if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the signal is not noticed")
	}
	d.signal(cmd, syscall.SIGTERM)
	if code := ended(t, cmd); code != 130 {
		t.Fatalf("exit %d\n%s%s", code, d.read("out"), d.read("err"))
	}
	if got := d.worked(d.read("out")); got.Ready != 1 || got.Dead != 0 {
		t.Errorf("%+v", got)
	}
	d.noProcess()
	d.verify()
}

// A queue with a long backlog does not keep a small one waiting.
func TestWorkIsFair(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("many.jsonl", strings.Repeat("{}\n", 60))
	d.write("few.jsonl", strings.Repeat("{}\n", 5))
	d.nixie(0, "enqueue", "many", "--jsonl", "many.jsonl")
	d.nixie(0, "enqueue", "few", "--jsonl", "few.jsonl")
	d.nixie(0, "work", "many", "few", "--drain", "-p", "1", "--", "sh", "-c", `echo "$NIXIE_QUEUE" >> ledger`)
	ledger := d.ledger("ledger")
	if len(ledger) != 65 || strings.Count(fmt.Sprint(ledger[:20]), "few") != 5 {
		t.Errorf("the order of %d: %v", len(ledger), ledger)
	}
}
