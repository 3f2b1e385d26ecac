package policy

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// fingerprintLength is that of every version.
const fingerprintLength = len(fingerprintVersion) + 16

// Outdated reports whether an earlier version of [Signature] made the fingerprint. Those of other
// deciders are not outdated.
func Outdated(fingerprint string) bool {
	return len(fingerprint) == fingerprintLength &&
		(strings.HasPrefix(fingerprint, "v1-") || strings.HasPrefix(fingerprint, "v2-"))
}

// GroupOf names the group of a letter. If its fingerprint is [Outdated], it is read anew from the
// failure that the letter is called after and from the body, so the letter must be whole; nothing
// else changes. Of a command, that failure has the line of its outputs that [WhyOf] finds. A letter
// that has lost these keeps its group.
func GroupOf(l *nixie.Letter) (label, fingerprint string) {
	if !Outdated(l.Fingerprint) || len(l.History) == 0 || len(l.Damage) > 0 {
		return l.Signature, l.Fingerprint
	}
	named := NamedAfter(l.History)
	if l.Cause == nixie.CauseOperator { // who held it did not look at the body
		return Signature(named)
	}
	return SignatureOf(readAnew(named), &l.Message)
}

// NamedAfter returns the failure that a letter with a history is called after: the newest, or the
// one before it if [Policy.Admit] made the newest, as [Recall] does. The history has a failure.
func NamedAfter(history []nixie.Failure) *nixie.Failure {
	n := len(history)
	newest := &history[n-1]
	if n > 1 && newest.Type == "" && newest.Took == 0 && doorTexts().MatchString(newest.Text) {
		return &history[n-2]
	}
	return newest
}

// maxCommandLine limits the line of its outputs in the text of a command's failure.
const maxCommandLine = 1 << 10

// endedAlone matches the text of a command that wrote nothing on standard error and did not exit.
var endedAlone = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|: )(?:timed out(?: after \S+)?|canceled|killed by signal \d+ \([^)]*\))$`)
})

// readAnew returns the failure of a command as this build would have made it from the outputs that
// it keeps: an earlier one took the last line of standard error. A text that is not made of that,
// such as the command's own message, stays.
func readAnew(f *nixie.Failure) *nixie.Failure {
	if f.ExitCode == nil {
		return f
	}
	outputs := map[string][]byte{}
	for _, a := range f.Attachments {
		outputs[a.Name] = a.Data
	}
	why := shorten(WhyOf(outputs["stderr"], outputs["stdout"]), maxCommandLine)
	if why == "" {
		return f
	}
	last, exited := lastLine(outputs["stderr"]), "exit status "+strconv.Itoa(*f.ExitCode)
	before, ok := strings.CutSuffix(f.Text, last)
	switch {
	case last == "" && strings.HasSuffix(f.Text, exited):
		before = strings.TrimSuffix(f.Text, exited)
	case last == "" && endedAlone().MatchString(f.Text):
		before = f.Text + ": "
	case last == "" || !ok || before != "" && !strings.HasSuffix(before, ": "):
		return f
	}
	anew := *f
	anew.Text = before + why
	class, _ := OfExit(*f.ExitCode)
	if class == f.Class && class == nixie.ClassUnknown && f.Reason == nixie.ReasonCommandFailed && !strings.Contains(before, "killed by") {
		anew.Class, anew.Reason = OfCommand("", *f.ExitCode, why)
	}
	return &anew
}

// lastLine returns the last line that is not blank, in at most as many bytes as earlier builds
// kept.
func lastLine(data []byte) string {
	data = bytes.TrimSpace(data)
	data = data[bytes.LastIndexAny(data, "\n\r")+1:]
	return shorten(strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")), maxCommandLine)
}
