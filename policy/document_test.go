package policy

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func TestDocument(t *testing.T) {
	d, err := ParseDocument(`
		max-attempts=10
		backoff=linear base=1m cap=1h
		case=reason=throttled; max-attempts=20; backoff=30s cap=1h
		retry-budget=7d
		max-crashes=2
		never-dead=reason:timeout,transport-unavailable
		never-dead=name:RateLimitError
		dead-at-once=exit:65,70
		dead-at-once=text:no such (user|host); maybe
		review-on=code:denied
		on-exhausted=hold`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Policy()
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config()
	if c.MaxAttempts != 10 || c.MaxCrashes != 2 || c.RetryBudget != 7*24*time.Hour || c.Backoff.Formula != Linear ||
		c.OnExhausted != nixie.Hold ||
		len(c.NeverDead) != 2 || len(c.DeadAtOnce) != 2 || len(c.ReviewOn) != 1 {
		t.Errorf("%+v", c)
	}
	if c := p.ConfigFor("any", nixie.ReasonThrottled); c.MaxAttempts != 20 || c.Backoff.Base != 30*time.Second {
		t.Errorf("throttled: %+v", c)
	}
	if f := (&nixie.Failure{Text: "no such user; maybe"}); !AnyHolds(c.DeadAtOnce, f) {
		t.Error("the pattern does not hold")
	}
	again, err := ParseDocument(d.String())
	if err != nil || again.String() != d.String() || !strings.HasPrefix(d.String(), "max-attempts=10\nmax-crashes=2\n") {
		t.Errorf("%v: written as\n%s\nread as\n%s", err, d, again)
	}
}

func TestDocumentIsRefused(t *testing.T) {
	for text, word := range map[string]string{
		"max-attempts":                   `write NAME=VALUE`,
		"attempts=3":                     `no option "attempts": choose one of profile, max-attempts`,
		"max-attempts=0":                 `max-attempts is "0": give a number from 1 to 1000000000, or none`,
		"max-attempts=3\nmax-attempts=4": "given 2 times",
		"max-crashes=none":               "max_crashes is -1",
		"max-age=soon":                   "is no duration",
		"max-age=0s":                     "give a duration up to",
		"profile=bad":                    `profile is "bad": choose one of`,
		"backoff=10h": "backoff base is 10h0m0s, which is more than the cap, 15m: " +
			"raise the cap, as in 'base=10h cap=40h'",
		"backoff=quadratic base=1s":                      "backoff formula",
		"on-exhausted=retry":                             "choose bury, hold, discard or halt",
		"never-dead=timeout":                             "give reason:, name:, code:, exit: or text:",
		"never-dead=reason:bad":                          `reason "bad" is unknown`,
		"never-dead=exit:0":                              "give numbers from 1 to 255",
		"never-dead=exit:1,":                             "give reason:",
		"never-dead=text:(":                              "missing closing )",
		"case=max-attempts=3":                            "names neither type nor reason",
		"case=reason=bad; max-attempts=3":                "choose a reason of the list",
		"case=type=a; backoff=10h":                       "more than the cap",
		"case=type=a; max-attempts=0":                    "give a number",
		"case=type=a; case=type=b":                       "a case has",
		"case=type=a\ncase=type=a":                       "occurs twice",
		"max-attempts=none\nmax-age=1h\nretry-budget=1h": "retry_budget is set",
		strings.Repeat("x", nixie.MaxPolicyText+1):       "the limit is 8192",
	} {
		_, err := ParseDocument(text)
		if code := nixie.CodeOf(err); code != nixie.CodeInvalid && code != nixie.CodeLimit || !strings.Contains(err.Error(), word) {
			t.Errorf("%.60q: %v, want %q", text, err, word)
		}
	}
	if _, err := (Document{}).With("backoff", "1s\nmax-attempts=9"); err == nil {
		t.Error("a value of two lines was taken")
	}
}

func TestDocumentOverAnother(t *testing.T) {
	read := func(text string) Document {
		d, err := ParseDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := read("profile=wink\nmax-attempts=10\nnever-dead=name:A")
	for over, want := range map[string]string{
		"":                                     base.String(),
		"max-attempts=3":                       "profile=wink\nmax-attempts=3\nnever-dead=name:A",
		"never-dead=name:B\nnever-dead=name:C": "profile=wink\nmax-attempts=10\nnever-dead=name:B\nnever-dead=name:C",
		"profile=prodigy\nmax-age=1h":          "profile=prodigy\nmax-age=1h",
	} {
		if got := read(over).Over(base).String(); got != want {
			t.Errorf("%q over it is %q, want %q", over, got, want)
		}
		if got := read(over).Over(Document{}).String(); got != over {
			t.Errorf("%q over nothing is %q", over, got)
		}
	}
	less, err := base.With("max-attempts")
	if err != nil || less.String() != "profile=wink\nnever-dead=name:A" || base.String() == less.String() {
		t.Errorf("%v: %q of %q", err, less, base)
	}
}

// Every option of a config that flags and settings can give is an option of a document, and each
// has a description.
func TestOptionsOfADocument(t *testing.T) {
	told := map[string]bool{}
	for _, o := range DocumentOptions() {
		told[strings.ReplaceAll(o.Name, "-", "_")] = true
		if o.Value == "" || o.Meaning == "" {
			t.Errorf("%+v", o)
		}
	}
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.config.options() {
		switch s.Name {
		case "rules", "extend_on", "exact_match", "max_retries": // of programs, whose errors have types
		case "cases":
			s.Name = "case"
			fallthrough
		default:
			if !told[s.Name] {
				t.Errorf("a document has no %s", s.Name)
			}
		}
	}
}

// A base that the cap would cut is refused, and a duration without a formula is a base.
func TestBackoffAboveItsCap(t *testing.T) {
	for _, text := range []string{"10h", "base=10h", "linear base=1h cap=30m", "fixed base=16m", "fibonacci base=1h"} {
		b, err := ParseBackoff(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Backoff: b}); err == nil || !strings.Contains(err.Error(), "more than the cap") {
			t.Errorf("%s: %v", text, err)
		}
	}
	b, err := ParseBackoff("10h cap=20h jitter=none")
	if err != nil || b.Base != 10*time.Hour || b.Delay(1, 0) != 10*time.Hour || b.Delay(2, 0) != 20*time.Hour {
		t.Errorf("%v: %s", err, b)
	}
	if b, err := ParseBackoff("0"); err != nil || b.Delay(3, 7) != 0 {
		t.Errorf("%v: %s", err, b)
	}
	for _, text := range []string{"10", "-1s", "1s 2s"} {
		if _, err := ParseBackoff(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	if _, err := New(Config{Backoff: Backoff{Formula: List, Base: time.Hour, Delays: []time.Duration{time.Hour}}}); err != nil {
		t.Error(err) // the base of a list means nothing
	}
}

func FuzzParseDocument(f *testing.F) {
	f.Add("max-attempts=10\nbackoff=linear base=1m cap=1h\ncase=reason=throttled; max-attempts=20\nnever-dead=text:a|b")
	f.Add("profile=wink\nretry-budget=7d\nreview-on=exit:1,2\nmax-age=none")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDocument(text)
		if err != nil {
			var coded *nixie.Error
			if !errors.As(err, &coded) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseDocument(d.String())
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%q is written as %q: %v", text, d, err)
		}
		if _, err := d.Policy(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
