package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

var parcel = nixie.NewType[string]("parcel", nixie.Queue("post"))

func TestRoutesLimitTheirType(t *testing.T) {
	t.Parallel()
	limited := parcel.Handle(nil, nixie.Attempts(2), nixie.Backoff("fixed base=1m jitter=none"))
	for name, c := range map[string]struct {
		config   policy.Config // of the queue or of the worker
		attempts int
		wait     time.Duration
	}{
		"they hold":                 {policy.Config{}, 2, time.Minute},
		"before the general values": {policy.Config{MaxAttempts: 7}, 2, time.Minute},
		"not before a case of the type": {
			policy.Config{Cases: []policy.Case{{Type: "parcel", Config: policy.Config{MaxRetries: 2}}}}, 3, time.Minute},
		"not before a profile of the type": {
			policy.Config{Cases: []policy.Case{{Type: "parcel", Config: policy.Config{Profile: "wink"}}}}, 5, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.New(c.config)
			if err != nil {
				t.Fatal(err)
			}
			st := memory.New(memory.Options{})
			if _, err := parcel.Enqueue(t.Context(), st, "a"); err != nil {
				t.Fatal(err)
			}
			desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "post"), Handler: nixie.Routes(limited), Policy: p,
				Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			got, err := desk.Receive(t.Context(), nixie.Want{Max: 1})
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			d := got[0]
			for n := 1; n <= c.attempts; n++ {
				d.Attempts = n
				sts, err := desk.Done(t.Context(), d, errors.New("no"), time.Now())
				if n == 1 && sts.Delay != c.wait {
					t.Errorf("it waits %s after attempt 1, want %s (%v)", sts.Delay, c.wait, err)
				}
				if last := n == c.attempts; (sts.Verb == nixie.Bury) != last {
					t.Errorf("attempt %d of %d: %s", n, c.attempts, sts.Verb)
				}
			}
		})
	}
}

func TestRouteHasATimeoutOfItsOwn(t *testing.T) {
	t.Parallel()
	letter := nixie.NewType[string]("letter", nixie.Queue("post"))
	st := memory.New(memory.Options{})
	var waited, wrapped []string
	hangs := func(name string) func(context.Context, *nixie.Job[string]) error {
		return func(ctx context.Context, _ *nixie.Job[string]) error {
			if _, limited := ctx.Deadline(); !limited {
				return nil
			}
			<-ctx.Done()
			waited = append(waited, name)
			return nixie.Permanent(ctx.Err())
		}
	}
	for _, err := range []error{
		second(parcel.Enqueue(t.Context(), st, "a")), second(letter.Enqueue(t.Context(), st, "b")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wrap := func(name string) func(nixie.Handler) nixie.Handler {
		return func(next nixie.Handler) nixie.Handler {
			return nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
				wrapped = append(wrapped, name)
				return next.Handle(ctx, d)
			})
		}
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "post"),
		Handler: nixie.Routes(
			parcel.Handle(hangs("parcel"), nixie.Timeout(20*time.Millisecond)),
			letter.Handle(hangs("letter"), nixie.Timeout(-1))),
		Concurrency: 1, Timeout: time.Hour, Until: worker.Until{Idle: true},
		Use: []func(nixie.Handler) nixie.Handler{wrap("outer"), wrap("inner")},
	})
	if err == nil {
		err = w.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(letters) != 1 || letters[0].Message.Type != "parcel" ||
		!strings.Contains(letters[0].Message.LastFailure, "20ms") || letters[0].Message.LastReason != nixie.ReasonTimeout {
		t.Errorf("%d letters, %v: %+v", len(letters), err, letters)
	}
	if len(waited) != 1 || waited[0] != "parcel" {
		t.Errorf("a timeout ended %v", waited)
	}
	if got := strings.Join(wrapped, " "); got != "outer inner outer inner" {
		t.Errorf("handlers are wrapped in the order %s", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLimitsThatAreNone(t *testing.T) {
	t.Parallel()
	route := func(options ...nixie.RouteOption) nixie.Handler { return nixie.Routes(parcel.Handle(nil, options...)) }
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	source := store.NewSource(memory.New(memory.Options{}), "post")
	for want, c := range map[string]worker.Config{
		"the route for type parcel has attempts or a backoff, and the worker a Decider: leave one out": {
			Handler: route(nixie.Attempts(2)), Decider: p},
		"backoff of the route for type parcel: ": {Handler: route(nixie.Backoff("often"))},
		"case type parcel: ":                     {Handler: route(nixie.Attempts(1 << 40))},
	} {
		c.Source = source
		if _, err := worker.New(c); err == nil || !strings.HasPrefix(err.Error(), want) || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	for want, routes := range map[string][]nixie.Route{
		"two routes for type parcel: leave one out":          {parcel.Handle(nil), parcel.Handle(nil)},
		"route for type x has no handler: set Handler":       {{Type: "x"}},
		"unknown types within -1s: give 0 for none":          {nixie.UnknownTypes(-time.Second)},
		"timeout of type parcel is -1s: give a positive one": {parcel.Handle(nil, nixie.Timeout(-time.Second))},
		"attempts of type parcel are -2: give a positive":    {parcel.Handle(nil, nixie.Attempts(-2))},
	} {
		_, err := nixie.CheckedRoutes(routes...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
}
