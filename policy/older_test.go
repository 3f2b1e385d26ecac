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

// TestGroupOfACommand reads the outputs that a letter keeps of a command again. What did not come
// from them stays.
func TestGroupOfACommand(t *testing.T) {
	const (
		node = "Error: connect ECONNREFUSED 10.1.2.3:5432\n    at TCPConnectWrap.afterConnect\n\nNode.js v20.1.0\n"
		java = "Exception in thread \"main\" java.lang.IllegalStateException: no customer\n\tat Main.main(Main.java:3)\n"
	)
	exit := 1
	for name, c := range map[string]struct {
		change func(*nixie.Failure)
		label  string
	}{
		"a closing line": {func(*nixie.Failure) {}, "transport-unavailable[exit 1]: Error: connect ECONNREFUSED <host>:5432"},
		"of a step": {func(f *nixie.Failure) { f.Step, f.Text = "load", "load: Node.js v20.1.0" },
			"transport-unavailable[step load, exit 1]: Error: connect ECONNREFUSED <host>:5432"},
		"in time": {func(f *nixie.Failure) {
			f.Class, f.Reason, f.Text = nixie.ClassTransient, nixie.ReasonTimeout, "timed out after 2s: Node.js v20.1.0"
		}, "timeout[exit 1]: timed out after <dur>: Error: connect ECONNREFUSED <host>:5432"},
		"by a signal": {func(f *nixie.Failure) { f.Text = "killed by signal 6 (aborted): Node.js v20.1.0" },
			"command-failed[exit 1]: killed by signal 6 (aborted): Error: connect ECONNREFUSED <host>:5432"},
		"permanent": {func(f *nixie.Failure) { f.Class = nixie.ClassPermanent },
			"command-failed[exit 1]: Error: connect ECONNREFUSED <host>:5432"},
		"on standard output": {func(f *nixie.Failure) {
			f.Text, f.Attachments = "exit status 1", []nixie.Attachment{{Name: "stdout", Data: []byte(java)}}
		}, "command-failed[exit 1]: java.lang.IllegalStateException: no customer"},
		"on standard output, killed": {func(f *nixie.Failure) {
			f.Text, f.Attachments = "killed by signal 9 (killed)", []nixie.Attachment{{Name: "stdout", Data: []byte(java)}}
		}, "command-failed[exit 1]: killed by signal 9 (killed): java.lang.IllegalStateException: no customer"},
		"its own message":   {func(f *nixie.Failure) { f.Text = "the quota is used up" }, "command-failed[exit 1]: the quota is used up"},
		"part of a message": {func(f *nixie.Failure) { f.Text = "old Node.js v20.1.0" }, "command-failed[exit 1]: old Node.js v<n>.<n>"},
		"outputs are lost":  {func(f *nixie.Failure) { f.Attachments = nil }, "command-failed[exit 1]: Node.js v<n>.<n>"},
		"no command":        {func(f *nixie.Failure) { f.ExitCode = nil }, "command-failed: Node.js v<n>.<n>"},
	} {
		f := nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonCommandFailed, Text: "Node.js v20.1.0", ExitCode: &exit,
			Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte(node)}, {Name: "stdout", Data: []byte("1 of 3\n")}}}
		c.change(&f)
		was := f.Text
		l := nixie.Letter{History: []nixie.Failure{f}, Fingerprint: "v2-0123456789abcdef"}
		if label, _ := policy.GroupOf(&l); label != c.label || l.History[0].Text != was {
			t.Errorf("%s: %s, want %s", name, label, c.label)
		}
	}
}
