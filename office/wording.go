package office

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Wording chooses how an office names acts in its advice and errors.
type Wording int

// The wordings.
const (
	ForCommands Wording = iota // as commands and flags of nixie
	ForPages                   // as what the console offers
)

// Worded returns the same office with another wording. New makes one for commands.
func (o *Office) Worded(w Wording) *Office {
	other := *o
	other.wording = w
	return &other
}

// phrases are the words of a text that differ, in the order of the wordings.
var phrases = [...][3]string{
	{"{force}", "--force", "force"},
	{"{slowly}", "slowly, with --rate", "slowly, with a limit of letters per second"},
	{"{queues}", "nixie queue list", "the page Queues"},
	{"{causes}", "nixie dlq analyze", "the page Groups"},
	{"{letters}", "nixie dlq list", "the page Letters"},
	{"{messages}", "nixie message list", "the page Messages"},
	{"{stream}", "nixie stream show %[1]s %[2]s", "stream %[2]s of queue %[1]s on the page Streams"},
	{"{unblock}", "nixie stream unblock", "unblock the stream"},
	{"{resume}", "nixie queue resume", "resume it"},
	{"{reasons}", "nixie stats reasons", "the page Retries"},
	{"{cancel}", "nixie message cancel", "cancel on the page of the message"},
}

// say writes a text as fmt.Sprintf does, with the phrases of a wording.
func (w Wording) say(format string, args ...any) string {
	for _, p := range phrases {
		format = strings.ReplaceAll(format, p[0], p[1+w])
	}
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// moment names a moment: for commands as it is in UTC, for pages by its distance from another one,
// since a text cannot know the zone of its reader.
func (w Wording) moment(at, from time.Time) string {
	if w == ForPages {
		return "in " + max(at.Sub(from), 0).Round(time.Second).String()
	}
	return "at " + Timestamp{at}.String()
}

// number writes a count: for pages as they write their own.
func (w Wording) number(n int64) string {
	if w == ForPages {
		return Thousands(strconv.FormatInt(n, 10))
	}
	return strconv.FormatInt(n, 10)
}

// count writes a count with its noun.
func (w Wording) count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return w.number(n) + " " + noun
}

// Thousands puts a thin space between the thousands of a number.
func Thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// Advice returns the fix that usually helps against a reason, for commands.
func Advice(r nixie.Reason) string { return ForCommands.advice(r) }

func (w Wording) advice(r nixie.Reason) string {
	switch r {
	case nixie.ReasonTransportUnavailable, nixie.ReasonDependency:
		return "see that what it depends on is up again, then redrive"
	case nixie.ReasonTimeout:
		return "find what is slow or raise the timeout, then redrive"
	case nixie.ReasonThrottled:
		return w.say("redrive {slowly}")
	case nixie.ReasonResource:
		return "give it memory, disk or run fewer at once, then redrive"
	case nixie.ReasonValidation, nixie.ReasonSerialization:
		return w.say("fix the producer or the handler; the same bytes fail again, so discard or redrive with {force} after a fix")
	case nixie.ReasonPoison, nixie.ReasonPanic:
		return w.say("fix the handler: this input ends it; then redrive one letter first (poison needs {force})")
	case nixie.ReasonAuth:
		return w.say("renew credentials or permissions, then redrive with {force}")
	case nixie.ReasonPolicy:
		return w.say("look at the rule that refused it, then redrive with {force} or discard")
	case nixie.ReasonMaxAge:
		return w.say("too old to be of use: look, then discard or redrive with {force}")
	case nixie.ReasonWorktree, nixie.ReasonMergeConflict, nixie.ReasonNoCommit:
		return "look at the worktree that was kept, then redrive"
	case nixie.ReasonUnknownType:
		return "deploy a worker that knows the type, then redrive"
	case nixie.ReasonLeaseExpired, nixie.ReasonCanceled:
		return "the worker went away: redrive"
	case nixie.ReasonUnknown, nixie.ReasonHandler, nixie.ReasonCommandFailed:
		return "read one example's output, fix the cause, then redrive"
	}
	return "look at the examples: they died of different reasons"
}
