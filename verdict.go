package nixie

import (
	"errors"
	"time"
)

// Verb is what becomes of a delivery.
type Verb string

// The verbs.
const (
	Complete Verb = "complete" // it succeeded
	Retry    Verb = "retry"    // again after a delay
	Release  Verb = "release"  // the lease goes back unused: the attempt is refunded, the delivery counts
	Discard  Verb = "discard"  // dropped on purpose; counted and logged
	Bury     Verb = "bury"     // to the dead letter office
	Hold     Verb = "hold"     // to the office, for review by a person
	Halt     Verb = "halt"     // to the office, and the queue is paused
)

// Settlement is a verb applied to a delivery. It is all or nothing, and refused
// with [CodeLeaseLost] when the lease is no longer the delivery's.
type Settlement struct {
	Delivery *Delivery
	Verb     Verb
	Delay    time.Duration // of a retry or release, from the store's now
	Failure  *Failure      // what went wrong; nil after success or release
	Second   *Failure      // with Burial alone: what went wrong when somebody was asked about Failure; appended after it
	Burial   *Burial       // with Bury, Hold and Halt
	Note     string        // why it was discarded
	MayPass  bool          // of a release: it may go before those of its stream that wait or are dead
}

// Burial is what policy decides about a letter at its death.
type Burial struct {
	Cause       Cause
	Status      Status // open, review or quarantined
	Signature   string // label of the group for people
	Fingerprint string // name of the group for machines
	Redrivable  bool   // may be redriven without force
	NeedsReview bool   // a person has to look first
	Rule        string // the rule that decided both
}

// Verdict is the error by which a handler asks for a verb itself. Complete is
// not among the verbs that can be asked for: return nil.
func Verdict(verb Verb, err error) error { return &Outcome{Verb: verb, Err: orText(err, string(verb))} }

// Permanent marks err as one that will not go away: the message is buried at
// once.
func Permanent(err error) error { return wrap(err, Outcome{Class: ClassPermanent}) }

// Transient marks err as one that may go away by itself.
func Transient(err error) error { return wrap(err, Outcome{Class: ClassTransient}) }

// RetryAfter marks err as transient and asks for the next attempt after d at
// the earliest.
func RetryAfter(err error, d time.Duration) error {
	return wrap(err, Outcome{Class: ClassTransient, After: max(d, 0)})
}

// Snooze gives the message back for d and takes its attempt back: for what is not the
// message's fault and will pass, such as a limit of rate. A nil err snoozes as well.
// Only max_deliveries of the policy, its max_age and the message's expiry end it.
func Snooze(err error, d time.Duration) error {
	return &Outcome{Verb: Release, After: max(d, 0), Err: orText(err, "snoozed")}
}

// WithReason says what err was.
func WithReason(err error, r Reason) error { return wrap(err, Outcome{Reason: r}) }

// WithEvidence adds what is known of a failure beyond its text: step, exit code,
// log location, stack, context, attachments. Other fields are ignored.
func WithEvidence(err error, f Failure) error { return wrap(err, Outcome{Evidence: &f}) }

// Outcome is what the marks above put around an error. Policy reads them with
// [OutcomeOf]; handlers use the functions.
type Outcome struct {
	Verb     Verb          // asked for; empty lets policy decide
	Class    Class         // empty lets policy classify
	Reason   Reason        // likewise
	After    time.Duration // least delay of a retry; 0 is none
	Evidence *Failure      // facts for the failure record
	Err      error         // what was marked
}

func (o *Outcome) Error() string { return o.Err.Error() }

// Unwrap returns the marked error.
func (o *Outcome) Unwrap() error { return o.Err }

// OutcomeOf joins all marks on err; an outer mark beats an inner one. Its Err is
// the first error below the marks.
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
		if joined.Evidence == nil {
			joined.Evidence = mark.Evidence
		}
		joined.After = max(joined.After, mark.After)
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
