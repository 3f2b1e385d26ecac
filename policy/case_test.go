package policy

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func cased(t *testing.T, never ...Matcher) *Policy {
	return mustNew(t, Config{
		MaxAttempts: 4, Backoff: Backoff{Formula: Fixed, Base: time.Second, Jitter: JitterNone},
		NeverDead: never,
		Cases: []Case{
			{Reason: nixie.ReasonThrottled, Config: Config{MaxAttempts: 50, Backoff: Backoff{Base: time.Minute}}},
			{Type: "mail", Config: Config{MaxAttempts: 2, OnExhausted: nixie.Discard,
				ClassRules: []ClassRule{{MatchExit(9), nixie.ClassPermanent, nixie.ReasonValidation}}}},
			{Type: "mail", Reason: nixie.ReasonThrottled, Config: Config{Backoff: Backoff{Jitter: JitterEqual},
				DeadAtOnce: []Matcher{MatchError(os.ErrInvalid)}}},
			{Type: "job", Config: Config{Profile: "wink"}},
			{Reason: nixie.ReasonLeaseExpired, Config: Config{MaxRetries: 7}},
		},
	})
}

func TestCasesInheritWhatTheyLeaveOpen(t *testing.T) {
	p := cased(t, MatchError(os.ErrClosed))
	type values struct {
		attempts, deliveries int
		base                 time.Duration
		jitter               Jitter
		verb                 nixie.Verb
		never, dead, rules   int
	}
	for _, c := range []struct {
		messageType string
		reason      nixie.Reason
		want        values
	}{
		{"", "", values{4, 22, time.Second, JitterNone, nixie.Bury, 1, 0, 0}},
		{"other", nixie.ReasonHandler, values{4, 22, time.Second, JitterNone, nixie.Bury, 1, 0, 0}},
		{"other", nixie.ReasonThrottled, values{50, 160, time.Minute, JitterNone, nixie.Bury, 1, 0, 0}},
		{"mail", nixie.ReasonHandler, values{2, 16, time.Second, JitterNone, nixie.Discard, 1, 0, 1}},
		// The case of the type beats that of the reason.
		{"mail", nixie.ReasonThrottled, values{2, 16, time.Minute, JitterEqual, nixie.Discard, 1, 1, 1}},
		// A case that names a profile inherits from that alone.
		{"job", nixie.ReasonHandler, values{5, 25, time.Minute, JitterNone, nixie.Bury, 2, 2, 10}},
		{"other", nixie.ReasonLeaseExpired, values{8, 34, time.Second, JitterNone, nixie.Bury, 1, 0, 0}},
	} {
		g := p.ConfigFor(c.messageType, c.reason)
		got := values{g.MaxAttempts, g.MaxDeliveries, g.Backoff.Base, g.Backoff.Jitter, g.OnExhausted, len(g.NeverDead),
			len(g.DeadAtOnce), len(g.ClassRules)}
		if got != c.want {
			t.Errorf("%q %q: %+v, want %+v", c.messageType, c.reason, got, c.want)
		}
	}
}

func TestDecideAsksTheCase(t *testing.T) {
	p := cased(t)
	for _, c := range []struct {
		messageType string
		reason      nixie.Reason
		attempts    int
		want        nixie.Verb
		delay       time.Duration
	}{
		{"", nixie.ReasonHandler, 3, nixie.Retry, time.Second},
		{"", nixie.ReasonHandler, 4, nixie.Bury, 0},
		{"", nixie.ReasonThrottled, 49, nixie.Retry, time.Minute},
		{"", nixie.ReasonThrottled, 50, nixie.Bury, 0},
		{"mail", nixie.ReasonHandler, 1, nixie.Retry, time.Second},
		{"mail", nixie.ReasonHandler, 2, nixie.Discard, 0},
		{"job", nixie.ReasonHandler, 4, nixie.Retry, 4 * time.Minute},
		{"job", nixie.ReasonTimeout, 5, nixie.Retry, 5 * time.Minute},
		{"", nixie.ReasonTimeout, 5, nixie.Bury, 0},
	} {
		d := delivery()
		d.Type, d.Attempts, d.Deliveries = c.messageType, c.attempts, c.attempts
		s := p.Decide(d, p.Diagnose(d, nixie.WithReason(errors.New("x"), c.reason), Attempt{}), noon)
		if s.Verb != c.want || s.Delay != c.delay {
			t.Errorf("%q %s, attempt %d: %s after %s, want %s after %s", c.messageType, c.reason, c.attempts, s.Verb, s.Delay, c.want,
				c.delay)
		}
	}
	d := delivery()
	d.Type = "mail"
	nine := 9
	f := p.Diagnose(d, nixie.WithEvidence(errors.New("x"), nixie.Failure{ExitCode: &nine}), Attempt{})
	if f.Reason != nixie.ReasonValidation {
		t.Errorf("rules of the type are not asked: %s", f.Reason)
	}
}

// Admit must not refuse a message that the case of one reason lets run again.
func TestAdmitIsAsGenerousAsTheMostGenerousCase(t *testing.T) {
	p := cased(t)
	for _, c := range []struct {
		messageType string
		attempts    int
		admitted    bool
	}{{"", 5, true}, {"", 50, true}, {"", 51, false}, {"mail", 9, false}, {"mail", 2, true}} {
		d := delivery()
		d.Type, d.Attempts, d.Deliveries = c.messageType, c.attempts, 1
		f := p.Admit(d, noon)
		if (f == nil) != c.admitted {
			t.Errorf("%q, attempt %d: %+v", c.messageType, c.attempts, f)
		}
		if f != nil {
			if s := p.Decide(d, f, noon); s.Verb == nixie.Retry || s.Verb == nixie.Release {
				t.Errorf("%q, attempt %d: not admitted, and %s", c.messageType, c.attempts, s.Verb)
			}
		}
	}
}

func TestTableShowsCases(t *testing.T) {
	rows := map[string]string{}
	for _, s := range cased(t).Table() {
		rows[s.Name] = s.Value
	}
	for name, want := range map[string]string{
		"cases":                 "5",
		"case reason throttled": "max_attempts 50; max_deliveries 160; backoff 1m up to 15m, no jitter",
		"case type mail":        "max_attempts 2; max_deliveries 16; on_exhausted discard; rules 1",
	} {
		if rows[name] != want {
			t.Errorf("%s is %q, want %q", name, rows[name], want)
		}
	}
}

func TestReviewOn(t *testing.T) {
	p := mustNew(t, Config{ReviewOn: []Matcher{MatchError(os.ErrPermission)}})
	bury := func(err error) *nixie.Burial {
		d := delivery()
		d.Attempts = 5
		return p.Decide(d, p.Diagnose(d, err, Attempt{}), noon).Burial
	}
	if b := bury(os.ErrPermission); !b.NeedsReview || b.Rule != "option:review_on" || b.Status != nixie.StatusOpen || !b.Redrivable {
		t.Errorf("matched: %+v", b)
	}
	p = mustNew(t, Config{ReviewOn: []Matcher{MatchReason(nixie.ReasonValidation)}})
	if b := bury(nixie.WithReason(errors.New("x"), nixie.ReasonValidation)); !b.NeedsReview || b.Rule != "reason:validation" {
		t.Errorf("the reason says so already: %+v", b)
	}
	if b := bury(os.ErrExist); b.NeedsReview || b.Rule != "reason:handler" {
		t.Errorf("not matched: %+v", b)
	}
}

// The waits of a generation never exceed the budget, and a wait that fits is never refused.
func TestRetryBudgetBoundsTheSumOfAllWaits(t *testing.T) {
	const budget = 40 * time.Second
	with := mustNew(t, Config{MaxAttempts: 100, RetryBudget: budget})
	free := mustNew(t, Config{MaxAttempts: 100})
	for i := range 50 {
		s := Scenario{Message: nixie.Message{ID: nixie.ID{1, byte(i)}}, Err: errors.New("x"), Start: noon, Jitter: true}
		var sum time.Duration
		runs, all := Simulate(with, s), waits(Simulate(free, s))
		for _, w := range waits(runs) {
			sum += w
		}
		next := all[len(runs)-1]
		if e := end(runs); sum > budget || sum+next <= budget || e.Rule != "retry-budget" || e.Cause != nixie.CauseExhausted {
			t.Fatalf("message %d: waited %s, the next would be %s: %+v", i, sum, next, e)
		}
	}
	exact := mustNew(t, Config{RetryBudget: 20 * time.Second, Backoff: Backoff{Formula: Fixed, Base: 10 * time.Second, Jitter: JitterNone}})
	if got := waits(Simulate(exact, Scenario{Err: errors.New("x"), Start: noon})); len(got) != 2 {
		t.Errorf("a budget of 20 s has %d waits of 10 s, want 2", len(got))
	}
	asked := Simulate(with, Scenario{Err: nixie.RetryAfter(errors.New("x"), time.Minute), Start: noon})
	if e := end(asked); e.Rule != "retry-budget" || len(asked) != 1 {
		t.Errorf("a wait that the handler asks for counts too: %+v", asked)
	}
}

func TestSimulatedReleasesEndByDeliveries(t *testing.T) {
	runs := Simulate(mustNew(t, Config{}), Scenario{Err: nixie.Verdict(nixie.Release, nil), Start: noon})
	for _, s := range runs {
		if s.Attempt != 1 {
			t.Fatalf("a release was not refunded: %+v", s)
		}
	}
	if e := end(runs); len(runs) != 25 || e.Rule != "max-deliveries" || e.Verb != nixie.Bury {
		t.Errorf("%d runs, the end is %+v", len(runs), e)
	}
	if got := Simulate(mustNew(t, Config{}), Scenario{Err: errors.New("x"), MaxRuns: 2}); len(got) != 2 {
		t.Errorf("%d runs, asked for 2", len(got))
	}
}

func TestMatchName(t *testing.T) {
	wrapped := fmt.Errorf("call: %w", &os.PathError{Op: "open", Path: "x", Err: os.ErrExist})
	for _, c := range []struct {
		m    Matcher
		err  error
		want bool
	}{
		{MatchName("PathError"), wrapped, true},
		{MatchName("PathError").Exact(), wrapped, false},
		{MatchName("PathError").Exact(), nixie.Transient(errors.Unwrap(wrapped)), true},
		{MatchName("Path"), wrapped, false},
		{MatchName("A", "RateLimitError"), errors.Join(errors.New("x"), namedError("RateLimitError")), true},
		{MatchName("RateLimitError"), nil, false},
		{MatchName("RateLimitError").Exact(), nil, false},
		{MatchError(os.ErrExist).Exact(), os.ErrExist, true},
		{MatchError(os.ErrExist).Exact(), wrapped, false},
		{MatchType[*os.PathError]().Exact(), wrapped, false},
		{MatchType[*os.PathError]().Exact(), errors.Unwrap(wrapped), true},
		{MatchCode(nixie.CodeLimit).Exact(), nixie.Errorf(nixie.CodeLimit, "x"), true},
		{MatchCode(nixie.CodeLimit).Exact(), fmt.Errorf("x: %w", nixie.Errorf(nixie.CodeLimit, "x")), false},
	} {
		if got := c.m.Holds(&nixie.Failure{Err: c.err}); got != c.want {
			t.Errorf("%s of %v: got %t", c.m, c.err, got)
		}
	}
	p := mustNew(t, Config{})
	if f := p.Diagnose(delivery(), namedError("RateLimitError"), Attempt{}); f.Type != "runtime.errors.RateLimitError" {
		t.Errorf("type is %q", f.Type)
	}
}

// The numbers were copied by hand from the documents of the other systems.
func TestProfilesHaveTheNumbersOfTheirSources(t *testing.T) {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	for _, want := range []struct {
		name                          string
		attempts, deliveries, crashes int
		backoff                       Backoff
	}{
		{"nixie", 5, 25, 3, Backoff{Formula: Exponential, Base: s, Factor: 2, Cap: 15 * m, Jitter: JitterEqual, Fraction: 0.3}},
		{"whizbang", 10, 40, 3, Backoff{Formula: Exponential, Base: 60 * s, Factor: 2, Cap: 60 * m, Jitter: JitterNone, Fraction: 0.3}},
		{"kafka-dlc", 5, 25, 3, Backoff{Formula: Exponential, Base: 400 * ms, Factor: 2, Cap: 10 * s, Jitter: JitterAdditive,
			Fraction: 0.3, From: 20 * ms, To: 50 * ms}},
		{"pgqueuer", 1, 13, 4, Backoff{Formula: Exponential, Base: s, Factor: 2, Cap: 5 * m, Jitter: JitterNone, Fraction: 0.3}},
		{"wink", 5, 25, 3, Backoff{Formula: Linear, Base: 60 * s, Factor: 2, Step: 60 * s, Cap: 15 * m, Jitter: JitterNone, Fraction: 0.3}},
		{"prodigy", 3, 19, 3, Backoff{Formula: Exponential, Base: s, Factor: 2, Cap: 30 * s, Jitter: JitterNone, Fraction: 0.3}},
	} {
		c := mustNew(t, Config{Profile: want.name}).Config()
		if c.MaxAttempts != want.attempts || c.MaxDeliveries != want.deliveries || c.MaxCrashes != want.crashes ||
			c.MaxAge != none || c.RetryBudget != none || c.MaxRedrives != 3 || c.OnExhausted != nixie.Bury ||
			!reflect.DeepEqual(c.Backoff, want.backoff) {
			t.Errorf("%s is %+v", want.name, c)
		}
		p, err := ProfileNamed(want.name)
		if err != nil || p.InClaim.Check() != nil || p.Breaker.Check() != nil {
			t.Errorf("%s: %v, %v, %v", want.name, err, p.InClaim.Check(), p.Breaker.Check())
		}
	}
	if p, err := ProfileNamed("prodigy"); err != nil || p.Breaker != countingBreaker() {
		t.Errorf("breaker is %+v, %v", p.Breaker, err)
	}
}

// docs/policy.md names every option, limit and profile as the code does.
func TestTheDocumentNamesEveryOption(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(cells[1], " `") {
			documented = append(documented, strings.Trim(cells[1], " `")+" = "+strings.TrimSpace(cells[2]))
		}
	}
	var coded []string
	for _, s := range mustNew(t, Config{}).Table() {
		coded = append(coded, s.Name+" = "+s.Value)
	}
	if !slices.Equal(documented, coded) {
		t.Errorf("docs/policy.md says\n%s\nthe code says\n%s", strings.Join(documented, "\n"), strings.Join(coded, "\n"))
	}
	for _, words := range [][]string{Profiles(), names(Formulas()), names(Jitters())} {
		for _, w := range words {
			if !strings.Contains(string(data), w) {
				t.Errorf("docs/policy.md does not speak of %q", w)
			}
		}
	}
	for i, rule := range DecisionRules() {
		if row := fmt.Sprintf("%d. **%s**", i+1, rule.Name); !strings.Contains(string(data), row) {
			t.Errorf("docs/policy.md does not have %q", row)
		}
	}
}

func names[T ~string](list []T) []string {
	var all []string
	for _, w := range list {
		all = append(all, string(w))
	}
	return all
}
