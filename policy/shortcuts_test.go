package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nixie-go/nixie"
)

// The functions of this file do without shortcuts what package policy does with them.

// Errors that answer one question each.
type (
	being    struct{ error } // to errors.Is what it holds, which it does not wrap
	becoming struct{ error } // to errors.As that
	exiting  int
	tardy    struct{ error }
	passer   struct{ error }
)

func (e being) Is(target error) bool { return target == e.error }
func (e becoming) As(target any) bool {
	to := reflect.ValueOf(target).Elem()
	held := reflect.ValueOf(e.error)
	if !held.Type().AssignableTo(to.Type()) {
		return false
	}
	to.Set(held)
	return true
}
func (e exiting) Error() string  { return "exit status" }
func (e exiting) ExitCode() int  { return int(e) }
func (e tardy) Unwrap() error    { return e.error }
func (e tardy) Timeout() bool    { return true }
func (e passer) Unwrap() error   { return e.error }
func (e passer) Temporary() bool { return true }

// parts returns the errors and the wrappers that chains are made of.
func parts() (leaves []error, wraps []func(error) error) {
	leaves = []error{
		errors.New("refused"), context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ENOSPC, syscall.ECONNREFUSED,
		&net.OpError{Op: "dial", Err: errors.New("x")}, &net.DNSError{Err: "no such host"}, exiting(3), &exec.ExitError{},
		&os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE},
		nixie.Errorf(nixie.CodeLimit, "too many"), (*nixie.Error)(nil), (*panicking)(nil), being{context.Canceled}, being{syscall.ENOMEM},
		becoming{&nixie.Outcome{Class: nixie.ClassPermanent, Err: errors.New("v")}}, becoming{exiting(4)},
		becoming{tardy{errors.New("t")}}, becoming{nixie.Errorf(nixie.CodeDenied, "no")},
	}
	d := &nixie.Delivery{}
	wraps = []func(error) error{
		func(err error) error { return fmt.Errorf("charge: %w", err) },
		func(err error) error { return fmt.Errorf("%w, and %w", err, errors.New("more")) },
		func(err error) error { return errors.Join(errors.New("first"), err) },
		func(err error) error { return errors.Join(nil, err) },
		nixie.Permanent,
		func(err error) error { return nixie.WithReason(err, nixie.ReasonAuth) },
		func(err error) error {
			return nixie.WithEvidence(err, nixie.Failure{Step: "given", Context: []string{"a"}})
		},
		func(err error) error { return d.Step("pay", func() error { return err }) },
		func(err error) error { return tardy{err} },
		func(err error) error { return passer{err} },
	}
	return leaves, wraps
}

// TestContextOfChains compares contexts with what each error adds to the text, for every chain of
// up to two wrappers.
func TestContextOfChains(t *testing.T) {
	leaves, wraps := parts()
	chains := slices.Clone(leaves)
	for from := 0; len(chains) < len(leaves)*(1+len(wraps)*(1+len(wraps))); {
		to := len(chains)
		for _, err := range chains[from:to] {
			for _, wrap := range wraps {
				chains = append(chains, wrap(err))
			}
		}
		from = to
	}
	for _, err := range chains {
		text, sound := textOf(err)
		if nodes := path(nil, err); sound && !slices.Equal(contextOf(nodes, text), plainContext(nodes)) {
			t.Errorf("%#v: context %q, want %q", err, contextOf(nodes, text), plainContext(nodes))
		}
	}
}

// plainContext asks every error for its text each time.
func plainContext(nodes []error) []string {
	var lines []string
	for i := 0; i+1 < len(nodes) && i < 2*nixie.MaxContext; i++ {
		outer, _ := textOf(nodes[i])
		inner, _ := textOf(nodes[i+1])
		added, wraps := strings.CutSuffix(outer, inner)
		if added = strings.TrimRight(added, ": \t\r\n"); wraps && added != "" {
			lines = append(lines, added)
		}
	}
	return lines
}

// plainNormal normalises without the fast path for words.
func plainNormal(text string) string {
	n := normaliser{text: text}
	for n.at < len(n.text) && !n.full {
		n.next()
	}
	return string(n.out)
}

func plainClean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func FuzzShortcuts(f *testing.F) {
	for _, text := range hostileTexts(64) {
		f.Add(text, "step", "main.f(0x1)\n", 1)
	}
	f.Add("open /a/b.c:1:2: it's 'x' “y” 10.0.0.1:80 2026-03-01T00:00:00Z 1m3s", "open", "", 0)
	f.Add("charge: the card: refused. Try again-: later... ok?- a.b c:d e-f g'h i", "charge", "", 2)
	f.Add("see a/b/c of x@y.z and a.b/c, tell-tale: a_b a%b it's ok! a:: b.- c$", "see", "f(1)\n", 0)
	f.Add("a b c d e f g h i j k l m n o p", "", "", 3)
	p, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, step, stack string, exit int) {
		if got, want := normalise(text), plainNormal(text); got != want {
			t.Fatalf("%q is %q, want %q", text, got, want)
		}
		if got, want := clean(text), plainClean(text); got != want {
			t.Fatalf("%q is cleaned to %q, want %q", text, got, want)
		}
		failure := nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Text: text, Step: step, Stack: stack}
		if exit != 0 {
			failure.ExitCode = &exit
		}
		for _, failure.Text = range []string{text, step + ": " + text, text + " 7", text + " 8", text} {
			wantLabel, wantPrint := Signature(&failure)
			if label, print := p.groups.of(&failure, &nixie.Message{}); label != wantLabel || print != wantPrint {
				t.Fatalf("%+v is in group %s %q, want %s %q", failure, print, label, wantPrint, wantLabel)
			}
		}
	})
}
