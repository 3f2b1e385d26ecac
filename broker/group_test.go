package broker_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// A group that was named by hand travels with its letter, and is the same after adoption.
func TestNameOfAGroupTravels(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	f := nixie.Failure{Generation: 1, Attempt: 1, StartedAt: at, FailedAt: at, Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler,
		Type: "*a", Text: "card 17 was declined", Group: "declined", Decision: nixie.Bury}
	l := nixie.Letter{
		Message: nixie.Message{Attempts: 1, Origin: &nixie.Origin{Channel: "orders", Partition: -1, Offset: 7}},
		Cause:   nixie.CauseExhausted, Class: f.Class, Reason: f.Reason, FirstFailedAt: at, History: []nixie.Failure{f},
	}
	adopted := broker.Adopted("kafka", &broker.Record{Channel: "orders.dlq", Headers: broker.LetterHeaders(&l), Timestamp: at}, "")
	label, fingerprint := policy.Signature(&f)
	newest := adopted.History[len(adopted.History)-1]
	if newest.Group != "declined" || adopted.Signature != label || adopted.Fingerprint != fingerprint {
		t.Errorf("adopted %q %s %s, want %s %s", newest.Group, adopted.Signature, adopted.Fingerprint, label, fingerprint)
	}
	adopted.Fingerprint = "v2-0000000000000000"
	if _, again := policy.GroupOf(&adopted); again != fingerprint {
		t.Errorf("named anew it is %s, want %s", again, fingerprint)
	}
}
