package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// The texts of limits within one claim, and what they mean.
func TestTextOfInClaim(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"attempts=5 max-delay=30s max-time=2m": "5 runs within 2m, 1s ×2 up to 30s, equal jitter",
		"attempts=2":                           "2 runs, 1s ×2 up to 15m, equal jitter",
		"max-time=1m   base=10ms attempts=3":   "3 runs within 1m, 10ms ×2 up to 15m, equal jitter",
		"attempts=3 max-delay=100ms":           "3 runs, 100ms ×2 up to 100ms, equal jitter",
		"attempts=3 base=0":                    "3 runs, no waiting",
		"none":                                 "none",
		"":                                     "attempts is missing",
		"max-time=2m":                          "attempts is missing",
		"attempts=1":                           "attempts is \"1\": give a number of runs from 2 to 1000",
		"attempts=1001":                        "give a number of runs from 2 to 1000",
		"attempts=many":                        "attempts is \"many\"",
		"attempts=3 attempts=4":                "attempts is given twice",
		"attempts=3 max-delay=0":               "max-delay is \"0\": give a duration from",
		"attempts=3 max-time=-1s":              "max-time is \"-1s\": give a duration from",
		"attempts=3 max-time=99999d":           "max-time is \"99999d\": give a duration from",
		"attempts=3 max-delay=9ms":             "max-delay is \"9ms\": give a duration from 10ms to",
		"attempts=3 cap=1s":                    "no setting \"cap\": choose attempts, base, max-delay or max-time",
		"attempts=3 base=1m max-delay=1s":      "",
		strings.Repeat("attempts=3 ", 2) + "max-time=1m": "attempts is given twice",
	} {
		i, err := parseInClaim(text)
		switch is := i.String(); {
		case err != nil && (want == "" || !strings.Contains(err.Error(), want) || nixie.CodeOf(err) != nixie.CodeInvalid):
			t.Errorf("%q: %v, want %s", text, err, want)
		case err == nil && want != "" && is != want:
			t.Errorf("%q: %s, want %s", text, is, want)
		}
	}
}

// A policy has the limits that it is given. Else it has those of its profile.
func TestInClaimOfAPolicy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "none",
		"profile=pgqueuer":                  "5 runs within 2m, 100ms ×2 up to 30s, 0s to 50ms more as jitter",
		"profile=pgqueuer\nin-claim=none":   "none",
		"profile=wink":                      "10 extensions",
		"profile=wink\nin-claim=attempts=3": "3 runs, 1s ×2 up to 15m, equal jitter, 10 extensions",
		"in-claim=attempts=3 max-time=1m base=1s": "3 runs within 1m, 1s ×2 up to 15m, equal jitter",
	} {
		d, err := ParseDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Policy()
		if err != nil || p.Config().InClaim.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, p.Config().InClaim, err, want)
		}
	}
	for text, says := range map[string]string{
		"in-claim=attempts=0":                      "in-claim is \"attempts=0\": attempts is \"0\"",
		"case=type=order; in-claim=attempts=3":     "a case has",
		"in-claim=attempts=3\nin-claim=attempts=4": "in-claim is given 2 times",
	} {
		if _, err := ParseDocument(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := New(Config{Cases: []Case{{Type: "order", Config: Config{InClaim: InClaim{MaxTime: time.Minute}}}}})
	if err == nil || !strings.Contains(err.Error(), "in_claim, which is for all types") {
		t.Error(err)
	}
}
