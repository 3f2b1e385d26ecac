package nixie

import (
	"errors"
	"time"
)

// Verb is a decision about a delivery.
type Verb string

// The verbs.
const (
	Complete Verb = "complete" // the message succeeded
	Retry    Verb = "retry"    // queue it again, after a delay
	Release  Verb = "release"  // queue it again and refund the attempt; the delivery counts
	Discard  Verb = "discard"  // drop it on purpose; it is counted and logged
	Bury     Verb = "bury"     // send it to the dead letter office
	Hold     Verb = "hold"     // bury it for review by a person
	Halt     Verb = "halt"     // bury it and pause the queue
)

// Settlement applies a verb to a delivery, whole or not at all. It is refused with [CodeLeaseLost]
// when the lease of the delivery is lost.
type Settlement struct {
	Delivery *Delivery
	Verb     Verb
	Delay    time.Duration // of a retry or release, from the store's now
	Failure  *Failure      // nil after success or release
	Second   *Failure      // with Burial only: a decider or hook failed as well; appended after Failure
	Burial   *Burial       // with Bury, Hold and Halt
	Took     time.Duration // by the handler; 0 if none ran
	Note     string        // reason of a discard
	Waiver   Waiver        // of a retry or release: why it costs neither an attempt nor a delivery
	MayPass  bool          // of a release: the message may overtake others of its stream that wait or are dead

	// Then are messages that are enqueued with the settlement: all of them and the settlement, or
	// nothing. A release has none. At most [MaxThen], with at most [MaxThenBytes] of bodies. They
	// have no ID, origin or answer to conflicts. The settlement frees the dedupe key of its own
	// message first, so one of them may have that key; if another message holds a key, nothing is
	// added for it. A broker refuses keys: it gives each message one of its own, the same one when
	// the delivery comes again.
	Then []Message
}

// CheckThen says what is wrong with messages that are to follow a settlement.
func CheckThen(messages []Message) error {
	if len(messages) > MaxThen {
		return Errorf(CodeLimit, "%d messages follow the settlement, the limit is %d: send one that lists the others",
			len(messages), MaxThen)
	}
	size := 0
	for i := range messages {
		m := &messages[i]
		if !m.ID.IsZero() || m.Origin != nil || m.OnConflict != ReturnExisting {
			return Errorf(CodeInvalid, "message %d that follows the settlement has an ID, an origin or an answer to conflicts: "+
				"leave them out; while its dedupe key is held nothing is added", i+1)
		}
		if err := m.Check(); err != nil {
			return Errorf(CodeOf(err), "message %d that follows the settlement: %w", i+1, err)
		}
		size += len(m.Body)
	}
	if size > MaxThenBytes {
		return Errorf(CodeLimit, "bodies of the messages that follow the settlement have %d bytes, the limit is %d: keep them elsewhere",
			size, MaxThenBytes)
	}
	return nil
}

// CheckThenOfBroker says what is wrong with messages that are to follow a settlement of a broker:
// what [CheckThen] refuses, and dedupe keys.
func CheckThenOfBroker(messages []Message) error {
	for i := range messages {
		if messages[i].DedupeKey != "" {
			return Errorf(CodeInvalid, "message %d that follows the settlement has the dedupe key %q: leave it out; "+
				"a broker gives each such message a key of its own", i+1, messages[i].DedupeKey)
		}
	}
	return CheckThen(messages)
}

// Burial holds the decisions of policy about a letter when its message dies.
type Burial struct {
	Cause       Cause
	Status      Status // open, review or quarantined
	Signature   string // label of the group, for people
	Fingerprint string // name of the group, for machines
	Redrivable  bool   // may be redriven without force
	NeedsReview bool   // a person has to look first
	Rule        string // rule of policy that decided Redrivable and NeedsReview
}

// Verdict returns an error by which a handler asks for a verb itself. A handler that wants Complete
// returns nil.
func Verdict(verb Verb, err error) error { return &Outcome{Verb: verb, Err: orText(err, string(verb))} }

// Permanent marks err as permanent: the message is buried at once.
func Permanent(err error) error { return wrap(err, Outcome{Class: ClassPermanent}) }

// Transient marks err as transient: another attempt may succeed.
func Transient(err error) error { return wrap(err, Outcome{Class: ClassTransient}) }

// RetryAfter marks err as transient, with the next attempt after d at the earliest.
func RetryAfter(err error, d time.Duration) error {
	return wrap(err, Outcome{Class: ClassTransient, After: max(d, 0), Timed: true})
}

// Snooze releases the message for d, which counts neither as an attempt nor for max_deliveries. It
// is for what is no failure of the message and will pass, such as a rate limit, and for a look that
// found nothing yet. A nil err snoozes as well. A message is snoozed until max_age of the policy or
// its own expiry ends it.
func Snooze(err error, d time.Duration) error {
	return &Outcome{Verb: Release, After: max(d, 0), Timed: true, Err: orText(err, "snoozed")}
}

// WithReason gives err a reason.
func WithReason(err error, r Reason) error { return wrap(err, Outcome{Reason: r}) }

// WithEvidence adds facts about a failure to err: step, exit code, log location, stack, context and
// attachments. The other fields of f are ignored.
func WithEvidence(err error, f Failure) error { return wrap(err, Outcome{Evidence: &f}) }

// WithGroup names the group of err: the letters with this name, class, reason, step and exit code
// are one line of nixie dlq analyze; their texts, types and stacks may differ. It is for causes
// whose errors differ, and for causes whose errors look alike. At most [MaxName] bytes count.
// An empty name changes nothing.
func WithGroup(err error, name string) error { return wrap(err, Outcome{Group: name}) }

// Outcome is an error with marks, as Permanent, Verdict and the other functions make it. Policy
// reads the marks with [OutcomeOf]; handlers call the functions.
type Outcome struct {
	Verb     Verb          // asked for by the handler; empty: policy decides
	Class    Class         // empty: policy classifies
	Reason   Reason        // empty: policy classifies
	After    time.Duration // least delay of a retry or release
	Timed    bool          // the handler gave After, which may be 0
	Within   time.Duration // of a release because of an unknown type: how long from the first one on
	Group    string        // name of its group; empty: policy names it
	Evidence *Failure      // facts for the failure record
	Err      error         // the marked error
}

func (o *Outcome) Error() string { return o.Err.Error() }

// Unwrap returns the marked error.
func (o *Outcome) Unwrap() error { return o.Err }

// Waiver returns what a release costs that the handler asked for: nothing if it gave a time, or if
// its worker does not know the type. For another verb there is none.
func (o *Outcome) Waiver() Waiver {
	switch {
	case o.Verb != Release:
		return NoWaiver
	case o.Reason == ReasonUnknownType:
		return WaiveUnknown
	case o.Timed:
		return WaiveSnooze
	}
	return NoWaiver
}

// OutcomeOf joins all marks on err. An outer mark beats an inner one. Err of the result is the
// first error below the marks.
func OutcomeOf(err error) Outcome {
	joined := Outcome{Err: err}
	for mark, ok := errors.AsType[*Outcome](err); ok; mark, ok = errors.AsType[*Outcome](mark.Err) {
		if joined.Verb == "" {
			joined.Verb = mark.Verb
		}
		if joined.Class == "" {
			joined.Class = mark.Class
		}
		if joined.Reason == "" {
			joined.Reason = mark.Reason
		}
		if joined.Group == "" {
			joined.Group = mark.Group
		}
		if joined.Evidence == nil {
			joined.Evidence = mark.Evidence
		}
		joined.After, joined.Within = max(joined.After, mark.After), max(joined.Within, mark.Within)
		joined.Timed = joined.Timed || mark.Timed || mark.After > 0
		if joined.Err == error(mark) {
			joined.Err = mark.Err
		}
	}
	return joined
}

func wrap(err error, mark Outcome) error {
	if err == nil {
		return nil
	}
	mark.Err = err
	return &mark
}

func orText(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}
