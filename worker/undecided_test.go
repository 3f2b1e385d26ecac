package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// deciderFunc is a decider of a test.
type deciderFunc func(*nixie.Delivery, *nixie.Failure, time.Time) nixie.Settlement

func (f deciderFunc) Decide(d *nixie.Delivery, failure *nixie.Failure, now time.Time) nixie.Settlement {
	return f(d, failure, now)
}

// A decider that fails does not end the process and loses no message. The message is held with its
// own failure and that of the decider, and its letter can be redriven.
func TestDeciderThatFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		decide deciderFunc
		want   string
	}{
		{"panics", func(*nixie.Delivery, *nixie.Failure, time.Time) nixie.Settlement { panic("token=hunter2") },
			"the decider panicked: token=***"},
		{"says nothing", func(*nixie.Delivery, *nixie.Failure, time.Time) nixie.Settlement { return nixie.Settlement{} },
			`the decider said "", which is no verb`},
		{"buries without burial", func(*nixie.Delivery, *nixie.Failure, time.Time) nixie.Settlement {
			return nixie.Settlement{Verb: nixie.Bury}
		}, "the decider said bury without a burial"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fill(t, st, "a", "b")
				seen := &troubles{}
				g := start(t, worker.Config{
					Source: store.NewSource(st, "q"), Decider: c.decide, Observer: seen.observer(),
					Mask:    func(f *nixie.Failure) { f.Text = strings.ReplaceAll(f.Text, "hunter2", "***") },
					Handler: handler(func(context.Context, *nixie.Delivery) error { return errBoom }),
				})
				time.Sleep(time.Minute)
				g.end()
				letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true, Limit: 10})
				if err != nil || len(letters) != 2 {
					t.Fatalf("%d letters, %v", len(letters), err)
				}
				for _, l := range letters {
					if l.Status != nixie.StatusReview || !l.Redrivable || !l.NeedsReview || l.Rule != "decider:failed" ||
						l.Fingerprint != letters[0].Fingerprint {
						t.Errorf("%+v", l)
					}
					if h := l.History; len(h) != 2 || h[0].Text != "boom" || h[1].Text != c.want || h[1].Reason != nixie.ReasonPolicy ||
						h[0].Decision != nixie.Hold {
						t.Errorf("history %+v", h)
					}
				}
				if errs, _, _ := seen.count(); errs > 0 {
					t.Errorf("trouble: %v", seen.errs)
				}
				sound(t, st)
			})
		})
	}
}

// The worker asks a decider about successes too. If the decider fails, the message still succeeds.
func TestDeciderAboutSuccess(t *testing.T) {
	for _, c := range []struct {
		name     string
		decide   deciderFunc
		want     nixie.State
		troubles int
	}{
		{"panics", func(*nixie.Delivery, *nixie.Failure, time.Time) nixie.Settlement { panic("token=hunter2") }, nixie.Succeeded, 1},
		{"discards", func(_ *nixie.Delivery, f *nixie.Failure, _ time.Time) nixie.Settlement {
			if f != nil {
				panic("not a success")
			}
			return nixie.Settlement{Verb: nixie.Discard}
		}, nixie.Discarded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fill(t, st, "a")
				seen := &troubles{}
				g := start(t, worker.Config{
					Source: store.NewSource(st, "q"), Decider: c.decide, Observer: seen.observer(),
					Mask:    func(f *nixie.Failure) { f.Text = strings.ReplaceAll(f.Text, "hunter2", "***") },
					Handler: handler(func(context.Context, *nixie.Delivery) error { return nil }),
				})
				time.Sleep(time.Minute)
				g.end()
				if m := message(t, st, "a"); m.State != c.want {
					t.Errorf("message is %s", m.State)
				}
				if len(seen.errs) != c.troubles || c.troubles > 0 && !strings.Contains(seen.errs[0].Error(), "token=***") {
					t.Errorf("trouble: %v", seen.errs)
				}
				sound(t, st)
			})
		})
	}
}

// The observer sees the masked text, and errors.Is still finds the error.
func TestR24_ObserverSeesTheMaskedError(t *testing.T) {
	secret := errors.New("password=hunter2")
	var seen []nixie.Settlement
	desk, err := worker.NewDesk(worker.Config{
		Source: &script{}, Mask: func(f *nixie.Failure) { f.Text = "hidden" },
		Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) { seen = append(seen, sts...) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Done(t.Context(), delivery("x"), secret, time.Time{}); err != nil {
		t.Fatal(err)
	}
	var asked *nixie.Outcome
	switch f := seen[0].Failure; {
	case f.Text != "hidden" || f.Err.Error() != "hidden":
		t.Errorf("text %q, error %q", f.Text, f.Err)
	case !errors.Is(f.Err, secret) || errors.Is(f.Err, errBoom) || errors.As(f.Err, &asked):
		t.Error("the error is not what it was")
	}
}
