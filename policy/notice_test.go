package policy

import (
	"errors"
	"testing"

	"github.com/nixie-go/nixie"
)

// A notice of a death has no cap of attempts or deliveries, unless a case of the policy names its
// type. What its handler marks as permanent dies.
func TestNoticesHaveNoCap(t *testing.T) {
	plain := mustNew(t, Config{MaxAttempts: 3, RetryBudget: 1000})
	cased := mustNew(t, Config{MaxAttempts: 3, Cases: []Case{{Reason: nixie.ReasonTimeout, Config: Config{MaxAttempts: 2}}}})
	named := mustNew(t, Config{MaxAttempts: 3, Cases: []Case{{Type: nixie.TypeDeadLetter, Config: Config{MaxAttempts: 4}}}})
	failure := &nixie.Failure{FailedAt: noon, Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Err: errors.New("no")}
	for _, c := range []struct {
		of   *Policy
		kind string
		err  error
		want nixie.Verb
	}{
		{plain, nixie.TypeDeadLetter, nil, nixie.Retry},
		{cased, nixie.TypeDeadLetter, nil, nixie.Retry},
		{named, nixie.TypeDeadLetter, nil, nixie.Bury},
		{plain, "other", nil, nixie.Bury},
		{plain, nixie.TypeDeadLetter, nixie.Verdict(nixie.Bury, nil), nixie.Bury},
	} {
		d := delivery()
		d.Type, d.Attempts, d.Deliveries = c.kind, 1000, 2000
		f := *failure
		if c.err != nil {
			f.Err = c.err
		}
		if got := c.of.Decide(d, &f, noon).Verb; got != c.want {
			t.Errorf("%s, %v: verb is %s, want %s", c.kind, c.err, got, c.want)
		}
		if got := c.of.Admit(d, noon) == nil; got != (c.want == nixie.Retry || c.err != nil) {
			t.Errorf("%s, %v: admitted is %t", c.kind, c.err, got)
		}
	}
}
