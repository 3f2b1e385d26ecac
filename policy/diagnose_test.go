package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

type timeoutError struct{}

func (timeoutError) Error() string { return "slow" }
func (timeoutError) Timeout() bool { return true }

type temporaryError bool

func (temporaryError) Error() string     { return "hiccup" }
func (t temporaryError) Temporary() bool { return bool(t) }

type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
func (e exitError) ExitCode() int { return int(e) }

func TestClassAndReason(t *testing.T) {
	one := 1
	failed := nixie.WithEvidence(errors.New("no such module"), nixie.Failure{ExitCode: &one})
	plain := errors.New("x")
	config := Config{ClassRules: []ClassRule{
		{When: MatchExit(9), Reason: nixie.ReasonResource},
		{When: MatchText(regexp.MustCompile(`rate limit`)), Reason: nixie.ReasonThrottled},
		{When: MatchType[*fs.PathError](), Class: nixie.ClassPermanent},
	}}
	for _, c := range []struct {
		err    error
		class  nixie.Class
		reason nixie.Reason
	}{
		{plain, nixie.ClassUnknown, nixie.ReasonHandler},
		{nixie.Permanent(plain), nixie.ClassPermanent, nixie.ReasonHandler},
		{nixie.Transient(plain), nixie.ClassTransient, nixie.ReasonHandler},
		{nixie.WithReason(plain, nixie.ReasonValidation), nixie.ClassPermanent, nixie.ReasonValidation},
		{nixie.Transient(nixie.WithReason(plain, nixie.ReasonValidation)), nixie.ClassTransient, nixie.ReasonValidation},
		{nixie.WithReason(plain, "made-up"), nixie.ClassUnknown, nixie.ReasonUnknown},
		{&nixie.Outcome{Class: "made-up", Err: plain}, nixie.ClassUnknown, nixie.ReasonHandler},
		{errors.New("429: rate limit reached"), nixie.ClassTransient, nixie.ReasonThrottled},
		{nixie.WithReason(errors.New("rate limit"), nixie.ReasonAuth), nixie.ClassPermanent, nixie.ReasonAuth},
		{exitError(9), nixie.ClassTransient, nixie.ReasonResource},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, nixie.ClassPermanent, nixie.ReasonHandler},
		{failed, nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{exitError(2), nixie.ClassUnknown, nixie.ReasonCommandFailed},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), nixie.ClassTransient, nixie.ReasonTimeout},
		{fmt.Errorf("run: %w", errors.Join(failed, context.DeadlineExceeded)), nixie.ClassTransient, nixie.ReasonTimeout},
		{nixie.Permanent(context.DeadlineExceeded), nixie.ClassPermanent, nixie.ReasonTimeout},
		{os.ErrDeadlineExceeded, nixie.ClassTransient, nixie.ReasonTimeout},
		{timeoutError{}, nixie.ClassTransient, nixie.ReasonTimeout},
		{context.Canceled, nixie.ClassTransient, nixie.ReasonCanceled},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{&net.DNSError{Err: "no such host", Name: "x"}, nixie.ClassTransient, nixie.ReasonTransportUnavailable},
		{fmt.Errorf("write: %w", syscall.ENOSPC), nixie.ClassTransient, nixie.ReasonResource},
		{temporaryError(true), nixie.ClassTransient, nixie.ReasonHandler},
		{temporaryError(false), nixie.ClassUnknown, nixie.ReasonHandler},
		{nixie.Errorf(nixie.CodeUnavailable, "store"), nixie.ClassTransient, nixie.ReasonDependency},
		{nixie.Errorf(nixie.CodeInvalid, "queue is empty"), nixie.ClassPermanent, nixie.ReasonValidation},
		{nixie.Errorf(nixie.CodeDenied, "no"), nixie.ClassPermanent, nixie.ReasonAuth},
		{nixie.Errorf(nixie.CodeConflict, "taken"), nixie.ClassUnknown, nixie.ReasonHandler},
		// Words are no evidence: this is a failed command, not a merge conflict.
		{nixie.WithEvidence(errors.New("test merge_timeout: conflict, invalid"), nixie.Failure{ExitCode: &one}), nixie.ClassUnknown,
			nixie.ReasonCommandFailed},
	} {
		f := mustNew(t, config).Diagnose(delivery(), c.err, Attempt{})
		if f.Class != c.class || f.Reason != c.reason {
			t.Errorf("%v (%T): %s %s, want %s %s", c.err, c.err, f.Class, f.Reason, c.class, c.reason)
		}
	}
}

func TestDiagnoseTellsTheWholeStory(t *testing.T) {
	p := mustNew(t, Config{})
	d := delivery()
	d.Steps = []string{"fetch"}
	lease.Ready(d)
	two := 2
	cause := d.Step("charge", func() error {
		err := fmt.Errorf("card of customer 7: %w", &fs.PathError{Op: "open", Path: "/k", Err: syscall.ENOENT})
		return nixie.WithEvidence(err, nixie.Failure{
			ExitCode: &two, LogLocation: "log/7", Stack: "goroutine 1", Context: []string{"in tests"},
			Attachments: []nixie.Attachment{{Name: "stderr", Data: make([]byte, nixie.MaxAttachment+3), Truncated: 4}},
		})
	})
	f := p.Diagnose(d, fmt.Errorf("invoice: %w", cause), Attempt{StartedAt: noon, FailedAt: noon.Add(3 * time.Second), Worker: "w",
		Node: "n"})

	if f.Text != "invoice: charge: card of customer 7: open /k: no such file or directory" {
		t.Errorf("text %q", f.Text)
	}
	if want := []string{"invoice", "charge", "card of customer 7", "open /k", "in tests"}; !slices.Equal(f.Context, want) {
		t.Errorf("context %q, want %q", f.Context, want)
	}
	if f.Type != "*fs.PathError" || f.Step != "charge" || *f.ExitCode != 2 || f.LogLocation != "log/7" || f.Stack != "goroutine 1" {
		t.Errorf("got %+v", f)
	}
	if f.Generation != 1 || f.Attempt != 2 || f.Took != 3*time.Second || f.Worker != "w" || f.Node != "n" ||
		!slices.Equal(f.Steps, []string{"fetch"}) {
		t.Errorf("got %+v", f)
	}
	if a := f.Attachments[0]; len(a.Data) != nixie.MaxAttachment || a.Truncated != 7 {
		t.Errorf("attachment of %d bytes, %d cut", len(a.Data), a.Truncated)
	}
	two = 99
	d.Steps[0] = "changed"
	if *f.ExitCode != 2 || f.Steps[0] != "fetch" {
		t.Error("the failure shares memory with the handler")
	}
}

func TestTypeNamesWhatSaysMost(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), "*errors.errorString"},
		{fmt.Errorf("a: %w", errors.New("x")), "*errors.errorString"},
		{fmt.Errorf("a: %w", &os.PathError{Err: syscall.ENOENT}), "*fs.PathError"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "*net.OpError"},
		{nixie.Permanent(nixie.Errorf(nixie.CodeLimit, "x")), "*nixie.Error"},
		{errors.Join(nil, timeoutError{}, temporaryError(true)), "policy.timeoutError"},
		{syscall.ENOENT, "syscall.Errno"},
	} {
		if f := mustNew(t, Config{}).Diagnose(delivery(), c.err, Attempt{}); f.Type != c.want {
			t.Errorf("%v: %s, want %s", c.err, f.Type, c.want)
		}
	}
}

type panicking struct{ name string }

func (e *panicking) Error() string        { return "never " + e.name }
func (e *panicking) Unwrap() error        { return errors.New(e.name) }
func (e *panicking) Is(target error) bool { return e.name == target.Error() }
func (e *panicking) As(any) bool          { return e.name == "" }

type ring struct{ next error }

func (r *ring) Error() string { return "ring" }
func (r *ring) Unwrap() error { return r.next }

func hostile() map[string]error {
	endless := &ring{}
	endless.next = fmt.Errorf("again: %w", endless)
	deep := errors.New("bottom")
	for range 2 * maxChain {
		deep = fmt.Errorf("w: %w", deep)
	}
	shared := errors.New("leaf")
	for range 60 {
		shared = errors.Join(shared, shared) // twice as many branches each time
		if len(shared.Error()) > 64<<10 {
			break
		}
	}
	return map[string]error{
		"typed nil":              (*panicking)(nil),
		"wrapped typed nil":      nixie.Permanent((*panicking)(nil)),
		"typed nil mark":         (*nixie.Outcome)(nil),
		"empty mark":             &nixie.Outcome{},
		"asked with typed nil":   nixie.Verdict(nixie.Hold, (*panicking)(nil)),
		"joined with typed nil":  errors.Join(errors.New("x"), (*panicking)(nil)),
		"invalid UTF-8":          errors.New("\xff\xfe a \x00 b \xc3("),
		"all invalid":            errors.New(strings.Repeat("\xff.", 1<<20)),
		"10 MiB":                 errors.New(strings.Repeat("0123456789", 1<<20)),
		"1 MiB in 40 wrappers":   wrapTimes(errors.New(strings.Repeat("é", 512<<10)), 40),
		"no text":                errors.New(""),
		"ring":                   endless,
		"mark on a ring":         nixie.Permanent(endless),
		"deep":                   deep,
		"shared":                 shared,
		"escapes and directions": errors.New("\x1b[31m red \u202e drow \u2028 line"),
	}
}

func wrapTimes(err error, n int) error {
	for range n {
		err = fmt.Errorf("outer: %w", err)
	}
	return err
}

func checkFailure(t testing.TB, f *nixie.Failure) {
	t.Helper()
	texts := map[string]struct {
		value string
		limit int
	}{
		"text": {f.Text, nixie.MaxFailureText}, "stack": {f.Stack, nixie.MaxStack}, "type": {f.Type, nixie.MaxName},
		"step": {f.Step, nixie.MaxName}, "log location": {f.LogLocation, maxContextLine},
	}
	for i, line := range f.Context {
		texts[fmt.Sprint("context ", i)] = struct {
			value string
			limit int
		}{line, maxContextLine}
	}
	for name, s := range texts {
		if len(s.value) > s.limit || !utf8.ValidString(s.value) || strings.Contains(s.value, "\x00") {
			t.Errorf("%s has %d bytes (limit %d) or is no clean UTF-8", name, len(s.value), s.limit)
		}
	}
	if f.Text == "" || f.Type == "" || !knownClass(f.Class) || !knownReason(f.Reason) || f.Err == nil || len(f.Context) > nixie.MaxContext {
		t.Errorf("failure with a hole: type %q class %q reason %q", f.Type, f.Class, f.Reason)
	}
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("the error that is handed on still panics: %v", cause)
		}
	}()
	_ = f.Err.Error()
}

func TestHostileErrorsAreSurvived(t *testing.T) {
	p := strict(t)
	all := hostile()
	for name, err := range all {
		t.Run(name, func(t *testing.T) {
			f := p.Diagnose(delivery(), err, Attempt{})
			checkFailure(t, f)
			s := p.Decide(delivery(), f, noon)
			if s.Failure == nil {
				t.Errorf("%s without a failure", s.Verb)
			}
		})
	}
	f := p.Diagnose(delivery(), all["wrapped typed nil"], Attempt{})
	if f.Class != nixie.ClassPermanent || !strings.Contains(f.Text, "a nil *policy.panicking was returned") {
		t.Errorf("class %s, text %q", f.Class, f.Text)
	}
	if s := p.Decide(delivery(), p.Diagnose(delivery(), all["asked with typed nil"], Attempt{}), noon); s.Verb != nixie.Hold {
		t.Errorf("the verb that was asked for is lost: %s", s.Verb)
	}
}

func TestNilErrorIsNoFailure(t *testing.T) {
	if f := mustNew(t, Config{}).Diagnose(delivery(), nil, Attempt{}); f != nil {
		t.Errorf("got %+v", f)
	}
}

func TestTookIsNeverNegative(t *testing.T) {
	p := mustNew(t, Config{})
	for _, at := range []Attempt{{StartedAt: noon, FailedAt: noon.Add(-time.Hour)}, {FailedAt: noon}} {
		if f := p.Diagnose(delivery(), errors.New("x"), at); f.Took != 0 {
			t.Errorf("%+v took %s", at, f.Took)
		}
	}
}

func TestCutKeepsBothEndsAndSaysSo(t *testing.T) {
	long := "outer: " + strings.Repeat("é", 40_000) + ": inner cause"
	got := cut(long, 1000)
	if len(got) > 1000 || !utf8.ValidString(got) || !strings.HasPrefix(got, "outer: é") || !strings.HasSuffix(got, "é: inner cause") ||
		!strings.Contains(got, fmt.Sprintf("…[%d bytes cut]…", len(long)-1000)) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	for limit := range 80 {
		if got := cut(long, limit); len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	if got := cut("short", 5); got != "short" {
		t.Errorf("got %q", got)
	}
}

func FuzzDiagnose(f *testing.F) {
	f.Add("plain", "step", "goroutine 1 [running]:\nmain.f(0x1)\n\t/x.go:1 +0x1\n", 3)
	f.Add("\xff\x00\x1b[0m'unclosed \"quotes` /a/b", "\xff", "panic({0x1, 0x2})\n", 0)
	f.Add(strings.Repeat("é", 600), strings.Repeat("s", 300), strings.Repeat("f(", 600), 40)
	p, err := New(Config{ClassRules: []ClassRule{{When: MatchText(regexp.MustCompile(`(a+)+$`)), Reason: nixie.ReasonDependency}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, step, stack string, depth int) {
		cause := errors.New(text)
		for i := range min(depth, 100) {
			cause = fmt.Errorf("%s %d: %w", step, i, cause)
		}
		cause = nixie.WithEvidence(cause, nixie.Failure{Step: step, Stack: stack, LogLocation: text, Context: []string{text, stack}})
		failure := p.Diagnose(delivery(), cause, Attempt{Worker: text, Node: stack})
		checkFailure(t, failure)
		failure.Class = nixie.ClassPermanent
		s := p.Decide(delivery(), failure, noon)
		if s.Burial == nil {
			t.Fatalf("%s without a burial", s.Verb)
		}
		checkLabel(t, s.Burial.Signature)
	})
}
