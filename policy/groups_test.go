package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// A remembered signature is used for the failures of its group, and not for other failures with the
// same text.
func TestGroupsAreRemembered(t *testing.T) {
	p, err := policy.New(policy.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	exit := func(code int) *int { return &code }
	failures := []nixie.Failure{
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler},
		{Class: nixie.ClassTransient, Reason: nixie.ReasonHandler},
		{Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Step: "charge"},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, ExitCode: exit(0)},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, ExitCode: exit(1)},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Stack: "main.pay(0x1)\n\tpay.go:1\n"},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Stack: "main.refund(0x1)\n\tpay.go:9\n"},
		{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Stack: strings.Repeat("main.deep(0x1)\n\tdeep.go:1\n", 1000)},
	}
	for round := range 3 {
		for i := range 300 {
			for _, f := range failures {
				f.Text = fmt.Sprintf("order %d of %d: refused", i, round%2)
				f.Err = errors.New(f.Text)
				d := &nixie.Delivery{Message: nixie.Message{Attempts: 1, Generation: 1}}
				b := p.Decide(d, &f, time.Time{}).Burial
				if label, print := policy.Signature(&f); b.Signature != label || b.Fingerprint != print {
					t.Fatalf("%+v is in group %s %q, not in %s %q", f, b.Fingerprint, b.Signature, print, label)
				}
			}
		}
	}
}
