package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// namedError is an error that names itself, as errors from other languages do.
type namedError string

func (e namedError) Error() string     { return "something about " + string(e) }
func (e namedError) ErrorName() string { return "runtime.errors." + string(e) }

// runsOf simulates a message whose attempts all fail with err.
func runsOf(t *testing.T, profile string, err error) []SimulatedRun {
	t.Helper()
	p, bad := ProfileNamed(profile)
	if bad != nil {
		t.Fatal(bad)
	}
	return Simulate(mustNew(t, Config{Profile: profile}), Scenario{Err: err, InClaim: p.InClaim, Start: noon})
}

func waits(runs []SimulatedRun) []time.Duration {
	var all []time.Duration
	for _, s := range runs {
		if s.Verb == nixie.Retry {
			all = append(all, s.Wait)
		}
	}
	return all
}

func end(runs []SimulatedRun) SimulatedRun { return runs[len(runs)-1] }

func TestR3_WinkDiesAtTheFifthDelivery(t *testing.T) {
	runs := runsOf(t, "wink", errors.New("handler raised"))
	if want := []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute}; !slices.Equal(waits(runs), want) {
		t.Errorf("waits are %v, want %v", waits(runs), want)
	}
	// Only the last decision ends the message, so the sender gets one final answer.
	for i, s := range runs {
		if ends := s.Verb == nixie.Bury; ends != (i == 4) {
			t.Errorf("delivery %d: %s", i+1, s.Verb)
		}
	}
	if e := end(runs); e.Cause != nixie.CauseExhausted || e.Attempt != 5 {
		t.Errorf("the end is %+v", e)
	}
}

func TestR4_WinkListsErrorsByName(t *testing.T) {
	p := mustNew(t, Config{Profile: "wink", MaxAge: time.Hour})
	for _, c := range []struct {
		err  error
		rule string
		verb nixie.Verb
		why  nixie.Reason
	}{
		{namedError("MailboxConnectionError"), "never-dead", nixie.Retry, nixie.ReasonTransportUnavailable},
		{namedError("RateLimitError"), "never-dead", nixie.Retry, nixie.ReasonThrottled},
		{namedError("TimeoutError"), "never-dead", nixie.Retry, nixie.ReasonTimeout},
		{context.DeadlineExceeded, "never-dead", nixie.Retry, nixie.ReasonTimeout},
		{namedError("ValidationError"), "permanent", nixie.Bury, nixie.ReasonValidation},
		{namedError("ContentPolicyViolation"), "permanent", nixie.Bury, nixie.ReasonPolicy},
		{namedError("AuthenticationError"), "permanent", nixie.Bury, nixie.ReasonAuth},
		{namedError("QuotaExceededError"), "permanent", nixie.Bury, nixie.ReasonResource},
		{namedError("ProviderError"), "max-attempts", nixie.Bury, nixie.ReasonDependency},
		{namedError("SerializationError"), "max-attempts", nixie.Bury, nixie.ReasonSerialization},
		{namedError("ResourceNotFoundError"), "max-attempts", nixie.Bury, nixie.ReasonDependency},
		{namedError("VisibilityExpansionRequired"), "extend-on", nixie.Release, nixie.ReasonHandler},
		{fmt.Errorf("wrapped: %w", namedError("ValidationError")), "permanent", nixie.Bury, nixie.ReasonValidation},
		{errors.Join(namedError("ValidationError"), namedError("RateLimitError")), "never-dead", nixie.Retry, nixie.ReasonThrottled},
	} {
		d := delivery()
		d.Attempts = 5
		f := p.Diagnose(d, c.err, Attempt{})
		rule, s := p.decide(d, f, noon)
		if rule != c.rule || s.Verb != c.verb || f.Reason != c.why {
			t.Errorf("%v: %s by %s for %s, want %s by %s for %s", c.err, s.Verb, rule, f.Reason, c.verb, c.rule, c.why)
		}
	}
	d := delivery()
	d.Attempts = 1
	if s := p.Decide(d, p.Diagnose(d, namedError("ValidationError"), Attempt{}), noon); s.Verb != nixie.Bury {
		t.Errorf("included, first delivery: %s", s.Verb)
	}
	d.EnqueuedAt = noon.Add(-time.Hour)
	s := p.Decide(d, p.Diagnose(d, namedError("RateLimitError"), Attempt{}), noon)
	if s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseMaxAge {
		t.Errorf("excluded and too old: %+v", s)
	}
}

func TestR4_ExactMatchPassesOverWrappedErrors(t *testing.T) {
	wrapped := fmt.Errorf("wrapped: %w", namedError("ValidationError"))
	for exact, want := range map[bool]nixie.Verb{false: nixie.Bury, true: nixie.Retry} {
		p := mustNew(t, Config{Profile: "wink", ExactMatch: exact})
		d := delivery()
		if s := p.Decide(d, p.Diagnose(d, wrapped, Attempt{}), noon); s.Verb != want {
			t.Errorf("exact %t, wrapped: %s, want %s", exact, s.Verb, want)
		}
		marked := nixie.RetryAfter(namedError("ValidationError"), 0) // a mark is not a wrapper of its own
		if s := p.Decide(d, p.Diagnose(d, marked, Attempt{}), noon); s.Verb != nixie.Bury {
			t.Errorf("exact %t, marked: %s", exact, s.Verb)
		}
	}
}

// budgetDecider buries as soon as too large a part of all messages fails. The counts of its policy
// still end a message. The function rate has to be pure, so that decisions can be replayed.
type budgetDecider struct {
	*Policy
	budget float64
	rate   func(*nixie.Delivery) float64
}

func (b budgetDecider) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	if f != nil && b.rate(d) > b.budget {
		spent := *f
		spent.Err = nixie.Verdict(nixie.Bury, f.Err)
		return b.Policy.Decide(d, &spent, now)
	}
	return b.Policy.Decide(d, f, now)
}

func TestR5_AnErrorBudgetIsADeciderOfItsOwn(t *testing.T) {
	rate := 0.0
	p := mustNew(t, Config{Profile: "wink", MaxAttempts: 10})
	var decide Decider = budgetDecider{p, 0.3, func(*nixie.Delivery) float64 { return rate }}
	d := delivery()
	d.Attempts, d.Deliveries = 2, 2
	fails := func() nixie.Settlement { return decide.Decide(d, p.Diagnose(d, errors.New("x"), Attempt{}), noon) }
	for _, c := range []struct {
		rate     float64
		attempts int
		want     nixie.Verb
	}{{0.1, 2, nixie.Retry}, {0.3, 2, nixie.Retry}, {0.31, 2, nixie.Bury}, {0.1, 10, nixie.Bury}} {
		rate, d.Attempts = c.rate, c.attempts
		if s := fails(); s.Verb != c.want {
			t.Errorf("rate %v, attempt %d: %s, want %s", c.rate, c.attempts, s.Verb, c.want)
		}
	}
	rate = 1
	if s := decide.Decide(d, nil, noon); s.Verb != nixie.Complete {
		t.Errorf("success: %s", s.Verb)
	}
}

func TestR6_KafkaDLCNamesThreeEnds(t *testing.T) {
	four := []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond}
	for _, c := range []struct {
		name    string
		err     error
		waits   []time.Duration
		channel string
	}{
		{"transient", nixie.Transient(errors.New("upstream timeout")), four, "transient_max_retries"},
		{"permanent", nixie.Permanent(errors.New("invalid schema")), nil, "permanent_error"},
		{"unknown", errors.New("surprise"), four, "unknown_max_retries"},
	} {
		runs := runsOf(t, "kafka-dlc", c.err)
		if len(runs) != len(c.waits)+1 || !slices.Equal(waits(runs), c.waits) || end(runs).Channel != c.channel {
			t.Errorf("%s: waits %v, then %s; want %v, then %s", c.name, waits(runs), end(runs).Channel, c.waits, c.channel)
		}
		for _, s := range runs {
			if s.Verb == nixie.Retry && (s.Least != s.Wait+20*time.Millisecond || s.Most != s.Wait+50*time.Millisecond-1) {
				t.Errorf("%s: band %s…%s of %s", c.name, s.Least, s.Most, s.Wait)
			}
		}
	}
	for cause, want := range map[nixie.Cause]string{nixie.CausePoison: "poison", nixie.CauseMaxAge: "max-age"} {
		if got := ChannelReason(nixie.ClassTransient, cause); got != want {
			t.Errorf("%s is called %s", cause, got)
		}
	}
}

func TestR7_WhizbangWaitsAMinuteThenTwo(t *testing.T) {
	p := mustNew(t, Config{Profile: "whizbang"})
	d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{7}, Generation: 1, EnqueuedAt: noon}}
	now := noon
	for attempt, want := range []time.Duration{60 * time.Second, 180 * time.Second} {
		d.Attempts, d.Deliveries = attempt+1, attempt+1
		s := p.Decide(d, p.Diagnose(d, errors.New("network timeout"), Attempt{StartedAt: now, FailedAt: now}), now)
		now = now.Add(s.Delay)
		if s.Verb != nixie.Retry || !s.Failure.NextAt.Equal(noon.Add(want)) {
			t.Errorf("failure %d: %s, next after %s, want %s", attempt+1, s.Verb, s.Failure.NextAt.Sub(noon), want)
		}
	}
	d.Attempts, d.Deliveries = 3, 3
	if s := p.Decide(d, nil, now); s.Verb != nixie.Complete {
		t.Errorf("third attempt: %s", s.Verb)
	}
}

func TestR8_PgqueuerRunsInClaimThenOnce(t *testing.T) {
	runs := runsOf(t, "pgqueuer", errors.New("smtp is away"))
	var inClaim []time.Duration
	for _, s := range runs[:len(runs)-1] {
		inClaim = append(inClaim, s.Wait)
	}
	want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}
	if e := end(runs); !slices.Equal(inClaim, want) || e.Run != 5 || e.Verb != nixie.Bury {
		t.Errorf("waits %v, then %+v", inClaim, e)
	}
	profile, err := ProfileNamed("pgqueuer")
	if err != nil || profile.OnConflict != nixie.FailOnConflict {
		t.Errorf("%v, duplicates are %v", err, profile.OnConflict)
	}
	for elapsed, want := range map[time.Duration]bool{
		0: true, 119 * time.Second: true, 2*time.Minute - 100*time.Millisecond - 51*time.Millisecond: true,
		2*time.Minute - 100*time.Millisecond: false, 3 * time.Minute: false,
	} {
		if _, again := profile.InClaim.Next(delivery(), 1, elapsed); again != want {
			t.Errorf("after %s: again %t", elapsed, again)
		}
	}
}

// Five retries in the database are six executions, and a handler that asks for a delay gets it.
func TestR8_PgqueuerDatabaseRetries(t *testing.T) {
	p := mustNew(t, Config{Profile: "pgqueuer", MaxRetries: 5})
	runs := Simulate(p, Scenario{Err: errors.New("x"), Start: noon})
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
	if !slices.Equal(waits(runs), want) || len(runs) != 6 || end(runs).Rule != "max-attempts" {
		t.Errorf("waits %v, then %+v", waits(runs), end(runs))
	}
	asked := nixie.WithReason(nixie.RetryAfter(errors.New("busy"), time.Minute), nixie.ReasonThrottled)
	s := Simulate(p, Scenario{Err: asked, Start: noon, MaxRuns: 1})[0]
	if s.Verb != nixie.Retry || s.Wait != time.Minute || s.Failure.Reason != nixie.ReasonThrottled {
		t.Errorf("asked for a minute: %s after %s, %s", s.Verb, s.Wait, s.Failure.Reason)
	}
}

// A vanished worker is no failure of the job there. The job runs again, and after more than three
// such workers it is poison.
func TestPgqueuerCountsVanishedHoldersSeparately(t *testing.T) {
	p := mustNew(t, Config{Profile: "pgqueuer"})
	runs := Simulate(p, Scenario{Start: noon})
	if e := end(runs); len(runs) != 4 || e.Rule != "max-crashes" || e.Cause != nixie.CausePoison {
		t.Errorf("%d runs, the end is %+v", len(runs), e)
	}
	d := delivery()
	d.Attempts, d.Crashes, d.Deliveries = 1, 2, 5
	if f := p.Admit(d, noon); f != nil {
		t.Errorf("not admitted after two vanished holders: %s", f.Text)
	}
	if s := p.Decide(d, p.Diagnose(d, errors.New("x"), Attempt{}), noon); s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseExhausted {
		t.Errorf("its one execution failed: %+v", s)
	}
}
