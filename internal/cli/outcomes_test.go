package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// outcomes is a store with letters of which each redrive dies again.
type outcomes struct {
	*testing.T
	where string
	now   time.Time
}

func newOutcomes(t *testing.T, letters int) *outcomes {
	b := &outcomes{T: t, where: "sqlite://" + filepath.Join(t.TempDir(), "s.db"), now: noon}
	b.in(func(st store.Store) {
		for i := range letters {
			_, err := st.Enqueue(t.Context(), nixie.Message{Queue: "orders", Key: fmt.Sprint("order-", i)})
			b.ok(err)
		}
	})
	b.die()
	return b
}

func (b *outcomes) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// in opens the store as another process does.
func (b *outcomes) in(do func(store.Store)) {
	b.Helper()
	st, err := app.OpenStore(b.where, app.Options{Clock: func() time.Time { return b.now }})
	b.ok(err)
	do(st)
	b.ok(st.Close())
}

// die ends what is queued, each of the same failure.
func (b *outcomes) die() {
	b.Helper()
	b.in(func(st store.Store) {
		ds, err := st.Claim(b.Context(), "orders", nixie.Want{Max: 100})
		b.ok(err)
		for _, d := range ds {
			f := &nixie.Failure{Generation: d.Generation, Attempt: d.Attempts, StartedAt: b.now, FailedAt: b.now,
				Class: nixie.ClassTransient, Reason: nixie.ReasonDependency, Text: "still down"}
			died := &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "down", Fingerprint: "v1-0",
				Redrivable: true}
			b.ok(errors.Join(st.Settle(b.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: died}})...))
		}
	})
}

// nixie runs a command, and calls then whenever that says how far it is.
func (b *outcomes) nixie(want int, then func(), args ...string) (out, errs string) {
	b.Helper()
	var o bytes.Buffer
	e := &watched{then: then}
	s := Streams{In: strings.NewReader(""), Out: &o, Err: e, ErrTTY: true, Env: func(string) string { return "" },
		Now: func() time.Time { return b.now }}
	root := newRoot(s)
	root.SetArgs(append(args, "--store", b.where))
	root.SetOut(&o)
	root.SetErr(e)
	if code := exitCode(s, root.ExecuteContext(b.Context())); code != want {
		b.Fatalf("%v: exit code %d\n%s%s", args, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// shows expects what operation show tells, for people and for programs.
func (b *outcomes) shows(id nixie.ID, want store.Outcome, text string) {
	b.Helper()
	out, _ := b.nixie(ExitOK, func() {}, "operation", "show", id.String())
	if !strings.Contains(out, text) {
		b.Errorf("%q is not said:\n%s", text, out)
	}
	out, _ = b.nixie(ExitOK, func() {}, "operation", "show", id.String(), "-o", "json")
	var v office.OperationView
	b.ok(json.Unmarshal([]byte(out), &v))
	o := v.Outcome
	if *o != want || v.Done != o.Succeeded+o.SameFailure+o.NewFailure+o.Gone+o.Unobserved+o.UnderWay ||
		v.Selected != v.Done+v.Skipped+v.Failed+v.Pending {
		b.Errorf("operation is %+v, its outcome %+v, want %+v", v, *o, want)
	}
	b.Logf("%d redriven: %s", v.Done, outcomeText(&v))
}

// Six letters are redriven and die again. No other operation on them takes their outcome over, and
// a redrive that runs meanwhile stops by itself.
func TestOutcomesStay(t *testing.T) {
	nothing := func() {}
	b := newOutcomes(t, 6)
	out, _ := b.nixie(ExitOK, nothing, "dlq", "redrive", "--all", "--reason", "fixed", "--yes", "--stop-after", "none", "-o", "json")
	var v office.OperationResult
	b.ok(json.Unmarshal([]byte(out), &v))
	b.shows(v.Operation, store.Outcome{UnderWay: 6}, "6 on their way")
	b.die()
	six := store.Outcome{SameFailure: 6}
	const died = "0 succeeded, 6 died of the same failure, 0 of another, 0 gone, 0 unobserved, 0 on their way"
	b.shows(v.Operation, six, died)
	for _, args := range [][]string{
		{"note", "--all", "--text", "Bob looks into it"}, {"hold", "--all", "--reason", "wait"}, {"unhold", "--all"},
		{"redrive", "--all", "--reason", "once more", "--stop-after", "none"}, {"note", "--filter", "status:redriving", "--text", "see"},
	} {
		b.nixie(ExitOK, nothing, append([]string{"dlq"}, append(args, "--yes")...)...)
		b.shows(v.Operation, six, died)
	}
	b.die()
	b.nixie(ExitOK, nothing, "dlq", "discard", "--all", "--reason", "given up", "--yes")
	b.shows(v.Operation, six, died)
	out, _ = b.nixie(ExitOK, nothing, "operation", "list", "-o", "json")
	var list []office.OperationView
	b.ok(json.Unmarshal([]byte(out), &list))
	for _, op := range list {
		if redriven := op.Event == store.OnRedrive; (op.Outcome != nil) != redriven || redriven && *op.Outcome != six {
			t.Errorf("%s in the list has the outcome %+v", op.Event, op.Outcome)
		}
	}

	b = newOutcomes(t, 40)
	said := 0
	again := func() { // what was redriven dies, and a note is written on all that is dead
		b.now = b.now.Add(3 * time.Second)
		b.die()
		b.nixie(ExitOK, nothing, "dlq", "note", "--all", "--text", "seen", "--yes")
		said++
	}
	out, errs := b.nixie(ExitPartly, again, "dlq", "redrive", "--all", "--reason", "fixed", "--yes", "--rate", "1", "--stop-after", "3")
	if !strings.Contains(out, "3 of 40 letters redriven, 37 to go") || !strings.Contains(errs, "of 3 that it moved 3 died again") ||
		said < 3 {
		t.Errorf("it did not stop:\n%s%s", out, errs)
	}
	t.Log(errs)
}
