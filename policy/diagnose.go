package policy

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Attempt describes a failed attempt, without its error.
type Attempt struct {
	StartedAt time.Time // when the handler began
	FailedAt  time.Time // when it returned
	Worker    string
	Node      string

	// Mask hides secrets in the texts of the failure; nil hides nothing. Diagnose calls it
	// before it cuts texts to their limits, so that no half of a secret stays. Of a text over a
	// megabyte Mask sees the two ends; of an attachment without its beginning it does not see
	// the first line. Class rules and matchers see the masked text. If Mask panics, Diagnose
	// leaves the texts out.
	Mask func(*nixie.Failure)
}

// Diagnose makes the record of a failed attempt, with its class and reason. Its texts are valid
// UTF-8 within the limits of package nixie, and a text that was cut has a mark. For a nil error it
// returns nil. It survives errors whose methods panic or whose chain has no end: Err then holds a
// harmless error instead.
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
	sound := every(err, func(error) {})
	if sound {
		marks = marksOf(err)
		nodes = path(room[:0], err)
		text, sound = textOf(err)
	}
	f.Text = text
	f.Type = typeOf(nodes)
	if sound {
		f.Context = contextOf(nodes, text)
	} else {
		harmless := marks
		harmless.Err = errors.New(cut(text, nixie.MaxFailureText))
		f.Err = &harmless
	}
	addEvidence(f, err, marks.Evidence)
	f.Group = marks.Group
	if at.Mask != nil {
		mask(f, at.Mask)
	}
	bound(f)
	f.Group = cmp.Or(f.Group, p.config.groupNamed(f))
	p.classify(d, f, marks)
	return f
}

// mask hides the secrets in the texts of a failure. It survives a function that panics.
func mask(f *nixie.Failure, hide func(*nixie.Failure)) {
	for _, text := range [...]*string{&f.Text, &f.Type, &f.Stack, &f.Step, &f.LogLocation, &f.Group} {
		*text = withoutMiddle(*text)
	}
	boundLists(f)
	for i, line := range f.Context {
		f.Context[i] = withoutMiddle(line)
	}
	for i := range f.Attachments {
		dropBrokenLine(&f.Attachments[i])
	}
	defer func() {
		if recover() != nil {
			f.Text, f.Type, f.Stack, f.Step, f.LogLocation, f.Group = "the text is withheld: its mask panicked", "withheld", "", "", "", ""
			f.Context, f.Attachments = nil, nil
		}
	}()
	hide(f)
}

// Abandoned makes the record of an attempt whose holder vanished: reason lease-expired, Worker the
// holder. The time of its end is unknown, so both times are the moment of the discovery.
func (p *Policy) Abandoned(d *nixie.Delivery, now time.Time) *nixie.Failure {
	f := newFailure(d, Attempt{StartedAt: now, FailedAt: now, Worker: d.AbandonedBy})
	f.Attempt = d.Attempts + 1 // a crash refunds the attempt
	f.Text = "the holder vanished without an outcome: killed, crashed, or silent for longer than its lease"
	f.Reason = nixie.ReasonLeaseExpired
	f.Class = triageOf(f.Reason).Class
	return f
}

// Admit returns nil if a delivery may run. Otherwise it returns the failure that Decide settles
// the delivery with. These must not run:
//
//	damaged  the store could not read it whole
//	expired  past its own expiry
//	aged     past max_age, after an earlier attempt of this generation
//	claimed  more often than max_deliveries
//	run      more often than max_attempts, unless never_dead is set
//
// Of several cases for the type the most generous limits count. A delivery that was run or claimed
// too often has the reason of its newest failure; [Recall] gives its letter the label of that. For
// an abandoned message a worker calls [Policy.Abandoned] instead of Admit.
func (p *Policy) Admit(d *nixie.Delivery, now time.Time) *nixie.Failure {
	if len(d.Damage) > 0 {
		return damaged(d, now)
	}
	limit, text, reason, class := p.refusal(d, now)
	if limit == "" {
		return nil
	}
	f := newFailure(d, Attempt{StartedAt: now, FailedAt: now})
	f.Text, f.Reason, f.Class, f.Err = text, reason, class, &atTheDoor{limit: limit}
	return f
}

// lastOf returns the reason of the newest failure of a message and the class that goes with it. It
// never returns permanent: the message was retried after that failure.
func lastOf(d *nixie.Delivery) (nixie.Reason, nixie.Class) {
	last := triageOf(d.LastReason)
	if last.Class == nixie.ClassPermanent {
		last.Class = nixie.ClassUnknown
	}
	return last.Reason, last.Class
}

// damaged makes the failure of a message that its store could not read whole.
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

// took returns the duration of an attempt. It is never negative, although clocks may go back.
func took(at Attempt) time.Duration {
	if at.StartedAt.IsZero() {
		return 0
	}
	return max(at.FailedAt.Sub(at.StartedAt), 0)
}

// addEvidence fills in the parts that the handler attached, and those that the methods of the error
// return.
func addEvidence(f *nixie.Failure, err error, given *nixie.Failure) {
	if given != nil {
		f.Step, f.LogLocation, f.Stack = given.Step, given.LogLocation, given.Stack
		f.ExitCode = given.ExitCode
		f.Context = append(f.Context, given.Context...)
		f.Attachments = given.Attachments
	}
	if f.Err != err {
		return // Diagnose has replaced an error that panics
	}
	if f.Step == "" {
		says(err, func(e stepped) bool { f.Step = e.Step(); return true })
	}
	if f.ExitCode == nil {
		says(err, func(e exited) bool {
			code := e.ExitCode()
			f.ExitCode = &code
			return true
		})
	}
}

// dropBrokenLine leaves out the first line of an attachment whose beginning is gone, or its first
// word if no line ends nearby. The mask could not hide a secret in that line if the name of the
// secret is in the part that is gone. [JoinEnds] has left out the lines around a cut in the middle.
func dropBrokenLine(a *nixie.Attachment) {
	if a.Truncated == 0 || bytes.Contains(a.Data, cutLine(a.Truncated)) {
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
	f.Text = cmp.Or(cut(f.Text, nixie.MaxFailureText), "an error without text")
	f.Type = cut(f.Type, nixie.MaxName)
	f.Step = cut(f.Step, nixie.MaxName)
	f.Group = cut(f.Group, nixie.MaxName)
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
