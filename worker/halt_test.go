package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// exited is the failure of a command with an exit code.
func exited(code int, text string) error {
	return nixie.WithEvidence(nixie.WithReason(errors.New(text), nixie.ReasonCommandFailed), nixie.Failure{ExitCode: &code})
}

var errAway = nixie.WithReason(nixie.Transient(errBoom), nixie.ReasonDependency)

// haltCase is a worker of which nothing succeeds, or not for long.
type haltCase struct {
	after    time.Duration
	hands    int
	backoff  time.Duration
	messages int
	handle   func(run int, at time.Duration) error
	want     string        // the error, as a pattern; "" is none within an hour
	took     time.Duration // whole seconds, until the end
	dead     int
}

func allAway(int, time.Duration) error { return errAway }

// A worker that is awaited ends when nothing succeeds: after HaltAfter, or at once when no command
// can be run. The last try begins at the end of HaltAfter; what is left stays queued.
func TestHalt(t *testing.T) {
	for name, c := range map[string]haltCase{
		"a dependency that is away": {2 * time.Minute, 4, time.Second, 300, allAway,
			"all 2[1-4] attempts failed the same way: boom", 120 * time.Second, 0},
		"one hand": {2 * time.Minute, 1, time.Second, 300, allAway,
			"all 16 attempts failed the same way: boom", 120 * time.Second, 0},
		"every command": {30 * time.Second, 4, time.Second, 300, func(int, time.Duration) error { return exited(1, "no such host") },
			"all 1[5-8] attempts failed the same way: no such host", 30 * time.Second, 0},
		"no command can be run": {2 * time.Minute, 1, time.Second, 300,
			func(int, time.Duration) error { return nixie.Permanent(exited(127, "typo: not found")) },
			"all 5 attempts failed the same way: typo: not found", 0, 5},
		"some commands can be run": {10 * time.Second, 1, time.Second, 300, func(run int, _ time.Duration) error {
			if run == 1 {
				return exited(1, "no")
			}
			return exited(127, "not found")
		}, "all 9 attempts failed, the last with reason command-failed: not found", 10 * time.Second, 0},
		"nothing can be tried before": {2 * time.Minute, 1, 15 * time.Minute, 5, allAway,
			"all 5 attempts failed the same way: boom", 122 * time.Second, 0},
		"a success before": {2 * time.Minute, 1, time.Second, 300, func(run int, _ time.Duration) error {
			if run == 1 {
				return nil
			}
			return errAway
		}, "", 0, 0},
		"the last try succeeds": {2 * time.Minute, 1, time.Second, 300, func(_ int, at time.Duration) error {
			if at >= 2*time.Minute {
				return nil
			}
			return errAway
		}, "", 0, 0},
		"never": {0, 1, time.Second, 300, allAway, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testHalt(t, &c) }) })
	}
}

func testHalt(t *testing.T, c *haltCase) {
	st := memory.New(memory.Options{})
	fillTyped(t, st, "x", c.messages)
	p, err := policy.New(policy.Config{Backoff: policy.Backoff{Base: c.backoff, Factor: 1, Jitter: policy.JitterNone}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var runs atomic.Int64
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "q"), Policy: p, Concurrency: c.hands, Awaited: true, HaltAfter: c.after,
		Logger: slog.New(slog.DiscardHandler), SettleEach: true,
		Handler: handler(func(context.Context, *nixie.Delivery) error { return c.handle(int(runs.Add(1)), time.Since(began)) })})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err = w.Run(ctx)
	took := time.Since(began)
	if c.want == "" {
		if err != nil || ctx.Err() == nil {
			t.Errorf("%v, after %s", err, took)
		}
		return
	}
	var halted *worker.HaltedError
	if !errors.As(err, &halted) || !regexp.MustCompile("^"+c.want+"$").MatchString(err.Error()) || took.Truncate(time.Second) != c.took {
		t.Errorf("%v after %s, want %q after %s", err, took, c.want, c.took)
	}
	queues, err := st.Queues(t.Context(), store.QueueQuery{})
	if err != nil {
		t.Fatal(err)
	}
	q := &queues[0]
	if q.Leased != 0 || q.Settings.Paused || int(q.Dead) != c.dead || int(q.Unfinished()) != c.messages-c.dead {
		t.Errorf("%d leased, %d dead, %d left, paused %v", q.Leased, q.Dead, q.Unfinished(), q.Settings.Paused)
	}
}

// Handlers that run at a halt may finish.
func TestHaltWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "x", 40)
		p, err := policy.New(policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(worker.Config{
			Source: store.NewSource(st, "q"), Policy: p, Concurrency: 2, Awaited: true, HaltAfter: time.Minute, Drain: 24 * time.Hour,
			Logger: slog.New(slog.DiscardHandler), SettleEach: true,
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				if d.Key == "x0" {
					time.Sleep(time.Hour)
					return nil
				}
				return exited(127, "not found")
			})})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = w.Run(t.Context())
		took := time.Since(began)
		if err == nil || err.Error() != "the first 10 attempts failed the same way: not found" || took < time.Hour {
			t.Errorf("%v after %s", err, took)
		}
		queues, err := st.Queues(t.Context(), store.QueueQuery{})
		if err != nil || queues[0].Succeeded != 1 || queues[0].Leased != 0 || queues[0].Unfinished() != 39 {
			t.Errorf("%+v, %v", queues, err)
		}
	})
}

func TestHaltIsChecked(t *testing.T) {
	for want, c := range map[string]worker.Config{
		"halt after is -1s: give a positive duration, or 0 for never": {HaltAfter: -time.Second},
		"halt after is 1s and there is no breaker: leave one of both out": {
			HaltAfter: time.Second, Breaker: policy.BreakerRules{Failures: -1}},
	} {
		c.Source, c.Handler = store.NewSource(memory.New(memory.Options{}), "q"), handler(nil)
		if _, err := worker.New(c); err == nil || err.Error() != want || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
