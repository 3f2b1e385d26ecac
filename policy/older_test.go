package policy_test

import (
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// TestGroupOf names the groups of letters of earlier builds as a worker names them today.
func TestGroupOf(t *testing.T) {
	failure := nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Text: "no account of alice"}
	message := nixie.Message{Queue: "q", Body: []byte(`{"user":"alice"}`)}
	label, fingerprint := policy.SignatureOf(&failure, &message)
	held, heldAs := policy.Signature(&failure)
	const older = "v2-0123456789abcdef"
	for name, c := range map[string]struct {
		change             func(*nixie.Letter)
		label, fingerprint string
	}{
		"older":               {func(*nixie.Letter) {}, label, fingerprint},
		"first version":       {func(l *nixie.Letter) { l.Fingerprint = "v1-0123456789abcdef" }, label, fingerprint},
		"newest failure":      {func(l *nixie.Letter) { l.History = []nixie.Failure{{Text: "x"}, failure} }, label, fingerprint},
		"held by an operator": {func(l *nixie.Letter) { l.Cause = nixie.CauseOperator }, held, heldAs},
		"no history":          {func(l *nixie.Letter) { l.History = nil }, "old", older},
		"damaged":             {func(l *nixie.Letter) { l.Damage = []string{"history"} }, "old", older},
		"of another decider":  {func(l *nixie.Letter) { l.Fingerprint = "v2-mine" }, "old", "v2-mine"},
		"of this version":     {func(l *nixie.Letter) { l.Fingerprint = "v3-0123456789abcdef" }, "old", "v3-0123456789abcdef"},
	} {
		l := nixie.Letter{Message: message, History: []nixie.Failure{failure}, Signature: "old", Fingerprint: older}
		c.change(&l)
		if gotLabel, got := policy.GroupOf(&l); gotLabel != c.label || got != c.fingerprint {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, gotLabel, c.fingerprint, c.label)
		}
	}
}
