package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
)

// watched calls back after each write.
type watched struct {
	bytes.Buffer
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(string(p), " of ") {
		w.then()
	}
	return n, err
}

// An interrupted redrive says how to go on, and the command that it prints does.
func TestR29_InterruptedOnTheCommandLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	fillStore("sqlite://"+path, func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := func(ctx context.Context, now func() time.Time, then func(), args ...string) (code int, out, errs string) {
		var o bytes.Buffer
		e := &watched{then: then}
		s := Streams{In: strings.NewReader(""), Out: &o, Err: e, ErrTTY: true, Env: func(string) string { return "" }, Now: now}
		root := newRoot(s)
		root.SetArgs(args)
		root.SetOut(&o)
		root.SetErr(e)
		code = exitCode(s, root.ExecuteContext(ctx))
		return code, o.String(), e.String()
	}
	where := "sqlite://" + path
	still := func() time.Time { return noon } // one letter goes, and the next is never due
	code, out, errs := run(ctx, still, cancel, "dlq", "redrive", "--all", "--force", "--reason", "fixed", "--yes", "--rate", "500",
		"--store", where, "-o", "json")
	var v office.OperationResult
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code != ExitInterrupted || v.Selected != 5 || v.Pending == 0 || v.Done()+v.Pending != 5 {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	next := regexp.MustCompile(`nixie (dlq redrive --resume .*)`).FindStringSubmatch(errs)
	if next == nil {
		t.Fatalf("no command to go on with: %s", errs)
	}
	args := strings.Fields(next[1])
	if code, out, errs := run(t.Context(), time.Now, func() {}, args...); code != ExitOK ||
		!strings.Contains(out, "5 of 5 letters redriven") {
		t.Errorf("%v: exit code %d, %s%s", args, code, out, errs)
	}
}

// A redrive whose letters die again says that it stopped, why, and how to go on; and the
// command that it prints goes on.
func TestStoppedOnTheCommandLine(t *testing.T) {
	where := "sqlite://" + filepath.Join(t.TempDir(), "s.db")
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fillStore(where, check)
	tick := noon
	later := func() { tick = tick.Add(3 * time.Second) } // the next one may go, and it is looked what died
	die := func() {                                      // what was redriven
		later()
		st, err := app.OpenStore(where, app.Options{Clock: func() time.Time { return tick }})
		check(err)
		defer st.Close() //nolint:errcheck // the test has what it wanted
		for _, queue := range []string{"orders", "billing", "+queue"} {
			ds, err := st.Claim(t.Context(), queue, nixie.Want{Max: 10})
			check(err)
			for _, d := range ds {
				f := &nixie.Failure{Generation: d.Generation, Attempt: d.Attempts, StartedAt: tick, FailedAt: tick,
					Class: nixie.ClassTransient, Reason: nixie.ReasonDependency, Text: "still down"}
				b := &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "down", Fingerprint: "v1-0",
					Redrivable: true}
				check(errors.Join(st.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: b}})...))
			}
		}
	}
	run := func(then func(), args ...string) (code int, out, errs string) {
		var o bytes.Buffer
		e := &watched{then: then}
		s := Streams{In: strings.NewReader(""), Out: &o, Err: e, ErrTTY: true, Env: func(string) string { return "" },
			Now: func() time.Time { return tick }}
		root := newRoot(s)
		root.SetArgs(args)
		root.SetOut(&o)
		root.SetErr(e)
		code = exitCode(s, root.ExecuteContext(t.Context()))
		return code, o.String(), e.String()
	}
	code, out, errs := run(die, "dlq", "redrive", "--all", "--force", "--reason", "fixed", "--yes", "--rate", "1", "--stop-after", "2",
		"--store", where)
	if code != ExitPartly || !strings.Contains(out, "2 of 5 letters redriven, 3 to go") || !strings.Contains(out, "by now 2 died again") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	for _, want := range []string{"of 2 that it moved 2 died again, the limit is 2", "nixie dlq analyze --filter operation:",
		"3 of 5 letters to go; go on with"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not said: %s", want, errs)
		}
	}
	next := regexp.MustCompile(`nixie (dlq redrive --resume .*)`).FindStringSubmatch(errs)
	if next == nil {
		t.Fatalf("no command to go on with: %s", errs)
	}
	if code, out, errs = run(later, append(strings.Fields(next[1]), "-o", "json")...); code != ExitOK {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	var v office.OperationResult
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Done() != 5 || *v.DiedAgain != 2 || *v.UnderWay != 3 || *v.Stopped {
		t.Errorf("%v, %s", err, out)
	}
}

func TestParseStop(t *testing.T) {
	for text, want := range map[string]redrive.Stop{"10%": {Share: 0.1}, "0.5%": {Share: 0.005}, "25": {After: 25, Share: -1},
		"none": {Share: -1}} {
		if got, err := parseStop(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "101%", "NaN%", "1e3", "x", "5 %", "99999999999"} {
		if got, err := parseStop(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "50": 50, "50/s": 50, "30/m": 0.5, "3600/h": 1, "0.5": 0.5} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%q is %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "NaN", "Inf", "1e300", "x", "/s", "5/", "5/d", "5/s/s", " 5"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("%q is %g, want an error", text, got)
		}
	}
}
