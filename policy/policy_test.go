package policy

import (
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func mustNew(t testing.TB, c Config) *Policy {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNewRefusesWithFieldLimitAndFix(t *testing.T) {
	odd := ClassRule{When: MatchExit(3)}
	for _, c := range []struct {
		name   string
		config Config
		words  []string
	}{
		{"attempts", Config{MaxAttempts: -2}, []string{"max_attempts is -2", "−1 for none"}},
		{"attempts over bound", Config{MaxAttempts: MaxCount + 1}, []string{"max_attempts", "1000000000"}},
		{"deliveries", Config{MaxDeliveries: math.MinInt}, []string{"max_deliveries"}},
		{"fewer deliveries than attempts", Config{MaxAttempts: 9, MaxDeliveries: 8}, []string{"max_deliveries is 8", "raise it"}},
		{"age", Config{MaxAge: -time.Second}, []string{"max_age"}},
		{"redrives", Config{MaxRedrives: -7}, []string{"max_redrives"}},
		{"no end", Config{MaxAttempts: none}, []string{"set max_deliveries or max_age"}},
		{"exclusion without end", Config{MaxDeliveries: none, NeverDead: []Matcher{MatchExit(1)}}, []string{"never_dead"}},
		{"retry as the end", Config{OnExhausted: nixie.Retry}, []string{"on_exhausted", "bury, hold, discard or halt"}},
		{"profile", Config{Profile: "unknown"}, []string{`profile is "unknown"`, "nixie"}},
		{"base", Config{Backoff: Backoff{Base: -5}}, []string{"backoff base"}},
		{"factor", Config{Backoff: Backoff{Factor: 0.5}}, []string{"backoff factor"}},
		{"factor not a number", Config{Backoff: Backoff{Factor: math.NaN()}}, []string{"backoff factor"}},
		{"cap", Config{Backoff: Backoff{Cap: time.Millisecond}}, []string{"backoff cap", "10ms"}},
		{"jitter", Config{Backoff: Backoff{Jitter: "some"}}, []string{"backoff jitter", "full, equal, proportional, additive or none"}},
		{"formula", Config{Backoff: Backoff{Formula: "quadratic"}}, []string{"backoff formula", "fibonacci"}},
		{"step", Config{Backoff: Backoff{Step: -1}}, []string{"backoff step"}},
		{"min over cap", Config{Backoff: Backoff{Cap: time.Second, Min: 2 * time.Second}}, []string{"backoff min is 2s", "1s"}},
		{"no function", Config{Backoff: Backoff{Formula: Custom}}, []string{"custom without a function"}},
		{"no delays", Config{Backoff: Backoff{Formula: List}}, []string{"delays has 0 entries", "1000"}},
		{"a delay", Config{Backoff: Backoff{Formula: List, Delays: []time.Duration{0, -1}}}, []string{"backoff delay 2"}},
		{"fraction", Config{Backoff: Backoff{Fraction: math.NaN()}}, []string{"backoff fraction"}},
		{"range", Config{Backoff: Backoff{Jitter: JitterAdditive}}, []string{"additive without a range"}},
		{"range backwards", Config{Backoff: Backoff{From: 2, To: 1}}, []string{"backoff adds from 2ns to 1ns"}},
		{"retries", Config{MaxRetries: -2}, []string{"max_retries is -2"}},
		{"retries against attempts", Config{MaxRetries: 5, MaxAttempts: 5},
			[]string{"max_retries is 5 and max_attempts 5", "one of the two"}},
		{"crashes", Config{MaxCrashes: none}, []string{"max_crashes is -1"}},
		{"budget", Config{RetryBudget: -time.Second}, []string{"retry_budget is -1s"}},
		{"budget without count", Config{RetryBudget: time.Hour, MaxAttempts: none, MaxAge: time.Hour},
			[]string{"retry_budget is set", "10000"}},
		{"extension without end", Config{MaxDeliveries: none, ExtendOn: []Matcher{MatchExit(1)}}, []string{"extend_on"}},
		{"empty case", Config{Cases: []Case{{}}}, []string{"neither type nor reason"}},
		{"reason of a case", Config{Cases: []Case{{Reason: "bad"}}}, []string{"case reason bad"}},
		{"case twice", Config{Cases: []Case{{Type: "a"}, {Type: "a"}}}, []string{"case type a occurs twice"}},
		{"case in a case", Config{Cases: []Case{{Type: "a", Config: Config{Cases: []Case{{Type: "b"}}}}}}, []string{"cases of its own"}},
		{"rules of a reason", Config{Cases: []Case{{Reason: nixie.ReasonAuth, Config: Config{ClassRules: []ClassRule{odd}}}}},
			[]string{"asked before the reason"}},
		{"profile of a case", Config{Cases: []Case{{Type: "a", Config: Config{Profile: "x"}}}}, []string{"case type a", `profile is "x"`}},
		{"value in a case", Config{Cases: []Case{{Type: "a", Reason: nixie.ReasonAuth, Config: Config{MaxAttempts: -5}}}},
			[]string{"case type a, reason auth", "max_attempts is -5"}},
		{"retries in a case", Config{Cases: []Case{{Type: "a", Config: Config{MaxRetries: -5}}}}, []string{"case type a", "max_retries"}},
		{"cases", Config{Cases: make([]Case, MaxCases+1)}, []string{"201 cases", "200"}},
		{"empty rule", Config{ClassRules: []ClassRule{{}}}, []string{"rule 1 has no matcher"}},
		{"idle rule", Config{ClassRules: []ClassRule{odd}}, []string{"rule 1", "exit code is one of [3]"}},
		{"class of a rule", Config{ClassRules: []ClassRule{{When: MatchExit(3), Class: "bad"}}}, []string{`class "bad"`}},
		{"reason of a rule", Config{ClassRules: []ClassRule{{When: MatchExit(3), Reason: "bad"}}}, []string{`reason "bad"`}},
		{"empty matcher", Config{DeadAtOnce: []Matcher{{}}}, []string{"dead_at_once"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.config)
			if nixie.CodeOf(err) != nixie.CodeInvalid {
				t.Fatalf("got %v, want an error of code invalid", err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestZeroConfigIsTheDefault(t *testing.T) {
	c := mustNew(t, Config{}).Config()
	if c.Profile != "nixie" || c.MaxAttempts != 5 || c.MaxDeliveries != 25 || c.MaxAge != none || c.MaxRedrives != 3 ||
		c.OnExhausted != nixie.Bury {
		t.Errorf("defaults are %+v", c)
	}
	want := Backoff{Formula: Exponential, Base: time.Second, Factor: 2, Cap: 15 * time.Minute, Jitter: JitterEqual, Fraction: 0.3}
	if !reflect.DeepEqual(c.Backoff, want) {
		t.Errorf("backoff is %+v, want %+v", c.Backoff, want)
	}
	if c := mustNew(t, Config{MaxAttempts: 8}).Config(); c.MaxDeliveries != 34 {
		t.Errorf("max_deliveries is %d for 8 attempts, want 34", c.MaxDeliveries)
	}
	if c := mustNew(t, Config{MaxAttempts: none, MaxAge: time.Hour}).Config(); c.MaxDeliveries != none {
		t.Errorf("max_deliveries is %d though attempts have no end, want none", c.MaxDeliveries)
	}
}

func TestEveryProfileIsValid(t *testing.T) {
	for _, name := range Profiles() {
		if got := mustNew(t, Config{Profile: name}).Config().Profile; got != name {
			t.Errorf("profile %q calls itself %q", name, got)
		}
	}
}

func TestPolicyKeepsItsOwnCopyOfTheConfig(t *testing.T) {
	c := Config{NeverDead: []Matcher{MatchExit(1)}}
	p := mustNew(t, c)
	c.NeverDead[0] = Matcher{}
	p.Config().NeverDead[0] = Matcher{}
	if got := p.Config().NeverDead[0].String(); got != "exit code is one of [1]" {
		t.Errorf("matcher is %q, changed from outside", got)
	}
}

func TestTableShowsWhatApplies(t *testing.T) {
	p := mustNew(t, Config{
		MaxAttempts: 7, MaxAge: 2 * time.Hour,
		ClassRules: []ClassRule{{When: MatchExit(75), Class: nixie.ClassTransient, Reason: nixie.ReasonDependency}},
		NeverDead:  []Matcher{MatchError(os.ErrDeadlineExceeded)},
		DeadAtOnce: []Matcher{MatchCode(nixie.CodeInvalid)},
	})
	rows := map[string]string{}
	for _, s := range p.Table() {
		if s.Name == "" || s.Value == "" || s.Meaning == "" {
			t.Errorf("row %+v has a hole", s)
		}
		if _, twice := rows[s.Name]; twice {
			t.Errorf("row %q occurs twice", s.Name)
		}
		rows[s.Name] = s.Value
	}
	for name, want := range map[string]string{
		"profile": "nixie", "max_attempts": "7", "max_deliveries": "31", "max_crashes": "3", "max_age": "2h", "max_redrives": "3",
		"on_exhausted": "bury", "backoff": "1s ×2 up to 15m, equal jitter", "lease": "30s", "heartbeat": "10s",
		"rule 1": "exit code is one of [75]", "never_dead": `error is "i/o timeout"`, "dead_at_once": "error has code invalid",
	} {
		if rows[name] != want {
			t.Errorf("%s is %q, want %q", name, rows[name], want)
		}
	}
}

func TestTriageCoversEveryReasonOnce(t *testing.T) {
	table := Triages()
	reasons := nixie.Reasons()
	if len(table) != len(reasons) {
		t.Fatalf("%d rows for %d reasons", len(table), len(reasons))
	}
	for i, r := range reasons {
		if table[i].Reason != r {
			t.Errorf("row %d is for %s, want %s", i, table[i].Reason, r)
		}
		if !knownClass(table[i].Class) {
			t.Errorf("%s has class %q", r, table[i].Class)
		}
	}
}

// The cause of death decides whether a letter may be redriven and has to be reviewed.
func TestTriageOfLetters(t *testing.T) {
	type letter struct{ redrivable, review bool }
	special := map[nixie.Reason]letter{ // all others may be redriven without a review
		nixie.ReasonValidation:    {false, true},
		nixie.ReasonSerialization: {false, true},
		nixie.ReasonPolicy:        {false, true},
		nixie.ReasonPoison:        {false, true},
		nixie.ReasonAuth:          {true, true},
		nixie.ReasonNoCommit:      {true, true},
		nixie.ReasonMaxAge:        {false, false},
	}
	check := func(verb nixie.Verb, cause nixie.Cause, r nixie.Reason, want letter, rule string) {
		t.Helper()
		redrivable, review, by := triage(verb, cause, r)
		if got := (letter{redrivable, review}); got != want || by != rule {
			t.Errorf("%s %s %s: %+v by %s, want %+v by %s", verb, cause, r, got, by, want, rule)
		}
	}
	for _, r := range nixie.Reasons() {
		want, ok := special[r]
		if !ok {
			want = letter{true, false}
		}
		for _, cause := range []nixie.Cause{nixie.CauseExhausted, nixie.CausePermanent, nixie.CauseMaxAge} {
			check(nixie.Bury, cause, r, want, "reason:"+string(r))
			check(nixie.Halt, cause, r, want, "reason:"+string(r))
			check(nixie.Hold, cause, r, letter{want.redrivable, true}, "verb:hold")
		}
		check(nixie.Bury, nixie.CausePoison, r, letter{false, true}, "cause:poison")
		check(nixie.Hold, nixie.CauseExpired, r, letter{false, false}, "cause:expired")
	}
	check(nixie.Bury, nixie.CauseExhausted, "made-up", letter{true, false}, "reason:unknown")
}

func TestMatchers(t *testing.T) {
	three := 3
	f := nixie.Failure{
		Text: "read: i/o timeout", Reason: nixie.ReasonTimeout, ExitCode: &three,
		Err: errors.Join(errors.New("other"), &os.PathError{Op: "read", Path: "x", Err: os.ErrDeadlineExceeded},
			nixie.Errorf(nixie.CodeDenied, "no")),
	}
	for _, c := range []struct {
		m    Matcher
		want bool
	}{
		{MatchError(os.ErrDeadlineExceeded), true},
		{MatchError(os.ErrClosed), false},
		{MatchError(nil), false},
		{MatchType[*os.PathError](), true},
		{MatchType[*os.LinkError](), false},
		{MatchCode(nixie.CodeDenied), true},
		{MatchCode(nixie.CodeLimit), false},
		{MatchReason(nixie.ReasonHandler, nixie.ReasonTimeout), true},
		{MatchReason(), false},
		{MatchExit(1, 3), true},
		{MatchExit(4), false},
	} {
		if got := c.m.Holds(&f); got != c.want {
			t.Errorf("%s: got %t", c.m, got)
		}
		if c.m.Holds(&nixie.Failure{}) {
			t.Errorf("%s holds for a failure without anything", c.m)
		}
	}
}
