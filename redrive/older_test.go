package redrive_test

import (
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// TestOlderLettersKeepTheirCause redrives letters whose fingerprints an earlier build made. Those
// that die of the same cause again have the same failure, although its fingerprint is another one.
func TestOlderLettersKeepTheirCause(t *testing.T) {
	c := newClock()
	st := open(t, c)
	bury(t, st, c, 3, func(i int, b *nixie.Burial) {
		if i < 2 {
			b.Fingerprint = "v2-0123456789abcdef"
		}
	})
	e, err := redrive.New(redrive.Config{Store: st, Clock: c.Now, Wait: c.Wait})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "r"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), op.ID); err != nil {
		t.Fatal(err)
	}
	_, slow := policy.Signature(&nixie.Failure{Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout, Text: "slow"})
	for _, died := range []string{slow, "v3-0123456789abcdef", "v1-a"} {
		buryNext(t, st, c, func(b *nixie.Burial) { b.Fingerprint = died })
	}
	op, err = store.FindOperation(t.Context(), st, store.OperationQuery{ID: op.ID})
	if want := (store.Outcome{SameFailure: 2, NewFailure: 1}); err != nil || op.Outcome != want {
		t.Errorf("outcome %+v, %v, want %+v", op.Outcome, err, want)
	}
}
