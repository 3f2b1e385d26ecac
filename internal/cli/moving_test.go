package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/office"
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
	code, out, errs := run(ctx, still, cancel, "dlq", "redrive", "--all", "--force", "--reason", "mended", "--yes", "--rate", "500", "--store", where, "-o", "json")
	var v office.OperationView
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
	if code, out, errs := run(t.Context(), time.Now, func() {}, args...); code != ExitOK || !strings.Contains(out, "5 of 5 letters redriven") {
		t.Errorf("%v: exit code %d, %s%s", args, code, out, errs)
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
