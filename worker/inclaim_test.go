package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// moreTime is an error with the name of one that asks for an extension.
type moreTime struct{}

func (moreTime) Error() string     { return "more time" }
func (moreTime) ErrorName() string { return "VisibilityExpansionRequired" }

// inClaimOf wraps a handler with the retries of a profile.
func inClaimOf(t *testing.T, name string, h nixie.HandlerFunc) (nixie.Handler, *policy.Policy) {
	t.Helper()
	profile, err := policy.ProfileNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(policy.Config{Profile: name})
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := worker.RetryInClaim(h, p, profile.InClaim, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped, p
}

func TestR8_InClaimRunsFiveTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		h, p := inClaimOf(t, "pgqueuer", func(context.Context, *nixie.Delivery) error {
			at = append(at, time.Since(begun))
			return errBoom
		})
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		g := start(t, worker.Config{Source: src, Handler: h, Policy: p})
		time.Sleep(10 * time.Second)
		g.end()
		if len(at) != 5 || src.verbs()["it"] != nixie.Bury {
			t.Fatalf("ran at %v, then %s", at, src.verbs()["it"])
		}
		for i, wait := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
			800 * time.Millisecond} {
			if got := at[i+1] - at[i]; got < wait || got >= wait+50*time.Millisecond {
				t.Errorf("waited %s before run %d, want %s and up to 50ms", got, i+2, wait)
			}
		}
	})
}

func TestR8_InClaimDeadlineCutsARunningAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var cut time.Duration
		h, p := inClaimOf(t, "pgqueuer", func(ctx context.Context, _ *nixie.Delivery) error {
			<-ctx.Done()
			cut = time.Since(begun)
			return errBoom
		})
		src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
		g := start(t, worker.Config{Source: src, Handler: h, Policy: p})
		time.Sleep(5 * time.Minute)
		g.end()
		if f := src.failure(t, "it"); cut != 2*time.Minute || f.Reason != nixie.ReasonTimeout {
			t.Errorf("cut after %s, reason %s", cut, f.Reason)
		}
	})
}

func TestInClaimEnds(t *testing.T) {
	for _, test := range []struct {
		name, profile string
		errs          []error // of the first runs; the last one goes on
		runs          int
		verb          nixie.Verb
	}{
		{"success", "pgqueuer", []error{nil}, 1, nixie.Complete},
		{"success at last", "pgqueuer", []error{errBoom, errBoom, nil}, 3, nixie.Complete},
		{"permanent", "pgqueuer", []error{errBoom, nixie.Permanent(errBoom)}, 2, nixie.Bury},
		{"asked", "pgqueuer", []error{nixie.Verdict(nixie.Hold, errBoom)}, 1, nixie.Hold},
		{"no retries", "wink", []error{errBoom}, 1, nixie.Retry},
		{"extended", "wink", []error{moreTime{}, moreTime{}, nil}, 3, nixie.Complete},
		{"extended too often", "wink", []error{moreTime{}}, 11, nixie.Release},
		{"extended, then failed", "wink", []error{moreTime{}, errBoom}, 2, nixie.Retry},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				h, p := inClaimOf(t, test.profile, func(context.Context, *nixie.Delivery) error {
					runs++
					return test.errs[min(runs, len(test.errs))-1]
				})
				src := &script{feed: [][]*nixie.Delivery{{delivery("it")}}}
				g := start(t, worker.Config{Source: src, Handler: h, Policy: p})
				time.Sleep(5 * time.Second)
				g.end()
				if got := src.verbs()["it"]; runs != test.runs || got != test.verb {
					t.Errorf("%d runs, then %s; want %d, then %s", runs, got, test.runs, test.verb)
				}
			})
		})
	}
}

func TestInClaimWaitThatIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := inClaimOf(t, "pgqueuer", func(context.Context, *nixie.Delivery) error { return errBoom })
		for _, c := range []struct {
			ends func() (context.Context, context.CancelFunc)
			want nixie.Verb
		}{
			{func() (context.Context, context.CancelFunc) {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, stop)
				return ctx, stop
			}, nixie.Release},
			{func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 50*time.Millisecond)
			}, nixie.Bury},
		} {
			ctx, cancel := c.ends()
			d := delivery("it")
			d.Attempts, d.Deliveries = 1, 1
			err := h.Handle(ctx, d)
			cancel()
			if s := p.Decide(d, p.Diagnose(d, err, policy.Attempt{}), time.Now()); s.Verb != c.want || !errors.Is(err, errBoom) {
				t.Errorf("%v: %s, want %s", err, s.Verb, c.want)
			}
		}
	})
}

func TestRetryInClaimRefuses(t *testing.T) {
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := nixie.HandlerFunc(succeed)
	var got []nixie.Code
	for _, try := range []func() (nixie.Handler, error){
		func() (nixie.Handler, error) { return worker.RetryInClaim(nil, p, policy.InClaim{}, time.Now) },
		func() (nixie.Handler, error) { return worker.RetryInClaim(h, nil, policy.InClaim{}, time.Now) },
		func() (nixie.Handler, error) { return worker.RetryInClaim(h, p, policy.InClaim{}, nil) },
		func() (nixie.Handler, error) {
			return worker.RetryInClaim(h, p, policy.InClaim{MaxAttempts: -1}, time.Now)
		},
		func() (nixie.Handler, error) { return worker.RetryInClaim(h, p, policy.InClaim{MaxTime: -1}, time.Now) },
	} {
		_, err := try()
		got = append(got, nixie.CodeOf(err))
	}
	if slices.ContainsFunc(got, func(c nixie.Code) bool { return c != nixie.CodeInvalid }) {
		t.Errorf("codes are %v", got)
	}
}
