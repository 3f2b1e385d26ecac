package policy

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Attempt are what is known of an attempt beside its error.
type Attempt struct {
	StartedAt time.Time // when the handler began
	FailedAt  time.Time // when it returned
	Worker    string
	Node      string

	// Mask hides in the texts of the failure what nobody may read; nil hides
	// nothing. It is called before texts are cut to their limits, so that no half
	// of a secret stays, and sees at most the ends of a text over a megabyte; the
	// first line of an attachment whose beginning is gone is left out. Rules and
	// matchers that look at the text see what it leaves. When it panics the texts
	// are withheld.
	Mask func(*nixie.Failure)
}

// Diagnose makes the record of a failed attempt: what it was, where, and of
// which class and reason. All its texts are valid UTF-8 and within the limits
// of package nixie, a cut one has a mark. A nil error is no failure: the answer
// is nil. It survives errors whose methods panic or whose chain has no end;
// such an error is replaced in Err by one that is harmless.
func (p *Policy) Diagnose(d *nixie.Delivery, err error, at Attempt) *nixie.Failure {
	if err == nil {
		return nil
	}
	f := newFailure(d, at)
	f.Err = err
	var marks nixie.Outcome
	var room [usualChain]error
	nodes := append(room[:0], err)
	text := "an error wraps too many others, or itself"
	can, sound := abilities(err)
	if sound {
		if can.has(canMark | canBeAs) {
			marks = marksOf(err)
		}
		nodes = path(room[:0], err)
		text, sound = textOf(err)
	}
	f.Text = text
	f.Type = typeOf(nodes)
	if sound {
		f.Context = trail(nodes, text)
	} else {
		harmless := marks
		harmless.Err = errors.New(cut(text, nixie.MaxFailureText))
		f.Err = &harmless
	}
	addEvidence(f, err, marks.Evidence, can)
	if at.Mask != nil {
		mask(f, at.Mask)
	}
	bound(f)
	p.classify(d, f, marks, can)
	return f
}

// mask lets the texts of a failure be masked, and survives that.
func mask(f *nixie.Failure, hide func(*nixie.Failure)) {
	for _, text := range [...]*string{&f.Text, &f.Type, &f.Stack, &f.Step, &f.LogLocation} {
		*text = ends(*text)
	}
	boundLists(f)
	for i, line := range f.Context {
		f.Context[i] = ends(line)
	}
	for i := range f.Attachments {
		beginWhole(&f.Attachments[i])
	}
	defer func() {
		if recover() != nil {
			f.Text, f.Type, f.Stack, f.Step, f.LogLocation = "the text is withheld: its mask panicked", "withheld", "", "", ""
			f.Context, f.Attachments = nil, nil
		}
	}()
	hide(f)
}

// Abandoned makes the record of an attempt whose holder vanished: reason
// lease-expired, Worker the holder. Nobody saw it end, so that both its times
// are the moment when that was found out.
func (p *Policy) Abandoned(d *nixie.Delivery, now time.Time) *nixie.Failure {
	f := newFailure(d, Attempt{StartedAt: now, FailedAt: now, Worker: d.AbandonedBy})
	f.Attempt = d.Attempts + 1 // the one that was given back
	f.Text = "the holder vanished without an outcome: killed, crashed, or silent for longer than its lease"
	f.Reason = nixie.ReasonLeaseExpired
	f.Class = triageOf(f.Reason).Class
	return f
}

// Admit says why a delivery must not be run at all: damaged, past its own
// expiry, past max_age after an earlier attempt of this life, or claimed or
// executed more often than the limits allow, where the most generous case of its
// type counts. One that was executed too often has the reason of its newest
// failure, which is what it dies of; where errors are never dead, it runs, for its
// error to be seen. Admit is nil when the delivery may run; otherwise Decide makes
// a settlement of it. A claim of an abandoned message is not for Admit but for
// [Policy.Abandoned].
func (p *Policy) Admit(d *nixie.Delivery, now time.Time) *nixie.Failure {
	text, reason, class := "", nixie.ReasonUnknown, nixie.ClassUnknown
	switch {
	case len(d.Damage) > 0:
		return damaged(d, now)
	case past(d.ExpiresAt, now):
		text, reason = "the message was past its expiry before it could be run", nixie.ReasonMaxAge
	case d.Attempts > 1 && p.inEveryCase(d, func(c *Config) bool { return c.aged(d, now) }):
		text, reason = "the message was past max_age before it could be run again", nixie.ReasonMaxAge
	case p.inEveryCase(d, func(c *Config) bool { return c.MaxDeliveries != none && claimed(d) > c.MaxDeliveries }):
		text = "the message was claimed max_deliveries times without an outcome"
	case p.inEveryCase(d, func(c *Config) bool { return c.outOfAttempts(d) }):
		text = "the message was executed max_attempts times before"
		reason, class = lastOf(d)
	default:
		return nil
	}
	f := newFailure(d, Attempt{StartedAt: now, FailedAt: now})
	f.Text, f.Reason, f.Class = text, reason, class
	return f
}

// lastOf is the reason of the newest failure of a message and the class that
// goes with it. Whatever is usual for that reason, it was no permanent one: the
// message was retried.
func lastOf(d *nixie.Delivery) (nixie.Reason, nixie.Class) {
	last := triageOf(d.LastReason)
	if last.Class == nixie.ClassPermanent {
		last.Class = nixie.ClassUnknown
	}
	return last.Reason, last.Class
}

// damaged makes the record of a message that its store could not read whole.
func damaged(d *nixie.Delivery, now time.Time) *nixie.Failure {
	f := newFailure(d, Attempt{StartedAt: now, FailedAt: now})
	f.Text = "the stored record is damaged and was not run: " + strings.Join(d.Damage, "; ")
	f.Reason = nixie.ReasonSerialization
	f.Class = nixie.ClassPermanent
	bound(f)
	return f
}

func newFailure(d *nixie.Delivery, at Attempt) *nixie.Failure {
	return &nixie.Failure{
		Generation: max(d.Generation, 1),
		Attempt:    max(d.Attempts, 1),
		StartedAt:  at.StartedAt,
		FailedAt:   at.FailedAt,
		Took:       took(at),
		Worker:     cut(at.Worker, nixie.MaxName),
		Node:       cut(at.Node, nixie.MaxName),
		Steps:      slices.Clone(d.Steps),
	}
}

// took is never negative, though clocks go back.
func took(at Attempt) time.Duration {
	if at.StartedAt.IsZero() {
		return 0
	}
	return max(at.FailedAt.Sub(at.StartedAt), 0)
}

// addEvidence fills in what the handler attached and what errors of a known
// form tell.
func addEvidence(f *nixie.Failure, err error, given *nixie.Failure, can ability) {
	if given != nil {
		f.Step, f.LogLocation, f.Stack = given.Step, given.LogLocation, given.Stack
		f.ExitCode = given.ExitCode
		f.Context = append(f.Context, given.Context...)
		f.Attachments = given.Attachments
	}
	if f.Err != err {
		return // not an error to be asked
	}
	if f.Step == "" && can.has(canStep|canBeAs) {
		says(err, func(e stepped) bool { f.Step = e.Step(); return true })
	}
	if f.ExitCode == nil && can.has(canExit|canBeAs) {
		says(err, func(e exited) bool {
			code := e.ExitCode()
			f.ExitCode = &code
			return true
		})
	}
}

// beginWhole leaves out the first line of an attachment whose beginning was not
// kept, or its first word when there is no end of a line nearby: what it was
// about, the name of a secret for example, may be in the part that is gone.
func beginWhole(a *nixie.Attachment) {
	if a.Truncated == 0 {
		return
	}
	near := a.Data[:min(len(a.Data), maxBrokenLine)]
	gone := bytes.IndexByte(near, '\n') + 1
	if gone == 0 {
		gone = bytes.IndexByte(near, ' ') + 1
	}
	if gone == 0 {
		gone = len(near)
	}
	a.Data, a.Truncated = a.Data[gone:], a.Truncated+int64(gone)
}

// bound keeps every part of a failure within its limit, in copies of its own.
func bound(f *nixie.Failure) {
	f.Text = orElse(cut(f.Text, nixie.MaxFailureText), "an error without text")
	f.Type = cut(f.Type, nixie.MaxName)
	f.Step = cut(f.Step, nixie.MaxName)
	f.LogLocation = cut(f.LogLocation, maxContextLine)
	f.Stack = cut(f.Stack, nixie.MaxStack)
	if f.ExitCode != nil {
		code := *f.ExitCode
		f.ExitCode = &code
	}
	boundLists(f)
	for i, line := range f.Context {
		f.Context[i] = cut(line, maxContextLine)
	}
}

// boundLists keeps lists within their limits, and attachments, of which the end
// says more than the beginning.
func boundLists(f *nixie.Failure) {
	f.Context = slices.Clone(f.Context[:min(len(f.Context), nixie.MaxContext)])
	f.Attachments = slices.Clone(f.Attachments[:min(len(f.Attachments), maxAttachments)])
	for i := range f.Attachments {
		a := &f.Attachments[i]
		a.Name = cut(a.Name, nixie.MaxName)
		gone := max(len(a.Data)-nixie.MaxAttachment, 0)
		a.Data = slices.Clone(a.Data[gone:])
		a.Truncated += int64(gone)
	}
}
