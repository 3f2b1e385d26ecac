package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// DLQPolicy says which failed messages die. What it does not mention is retried after
// min(60·n, 900) seconds, n being the number of the attempt. The first that holds decides:
//
//	Decide            its verb
//	Exclude           the message is retried
//	Reject            it is discarded
//	Include           it dies; so does what the handler marked with [nixie.Permanent]
//	MaxDeliveryCount  it dies at this attempt
//
// MaxAge, the expiry of the message, an operator, and holders that vanish again and again end all
// retries. MaxDeliveries ends them too. Its default is for what Exclude does not name: a message
// whose errors are excluded is retried as long as they last, after 15 min each.
type DLQPolicy struct {
	MaxDeliveryCount int              // default [DefaultMaxDeliveryCount], −1 none: only the other rules
	Include          []policy.Matcher //
	Exclude          []policy.Matcher //
	Reject           []policy.Matcher // no letter is left of it
	MaxDeliveries    int              // default three times MaxDeliveryCount and 10, and none for Exclude; see [policy.Config]
	MaxAge           time.Duration    // since it was sent, or redriven last; default none

	// Mailbox takes a [DeadLetter] for each message that dies, in the transaction in which it dies;
	// {source} stands for the mailbox of the message. Default [DefaultDLQ]; [NoMailbox] is none.
	// Routes name other ones for some failures; the first that holds counts. A loop refuses the
	// mailbox that it works on, and over a broker the channel of its letters.
	Mailbox string
	Routes  []Route

	// Decide may choose a verb for a failed attempt: Retry, Bury, Hold, Halt or Discard. It
	// returns "" for what the other rules should decide, and rules returns their verb, to decide by
	// that. It has to be pure and safe for concurrent use.
	Decide func(d *nixie.Delivery, f *nixie.Failure, rules func() nixie.Verb) nixie.Verb
}

// Route names the mailbox of dead letters for some failures.
type Route struct {
	When    policy.Matcher
	Mailbox string // as in [DLQPolicy]
}

// NoMailbox sends no [DeadLetter]: then the letter in the dead letter office is all that there is.
const NoMailbox = "-"

// DefaultMaxDeliveryCount is the number of attempts before a message dies.
const DefaultMaxDeliveryCount = 5

const defaultMaxDeliveries = 3*DefaultMaxDeliveryCount + 10

// DLQ decides by a [DLQPolicy]. Give it to a worker as Decider, and its Policy as Policy.
type DLQ struct {
	c       DLQPolicy
	rules   *policy.Policy
	patient *policy.Policy // retries until a hard cap
	endless *policy.Policy // without a bound of deliveries, for what Exclude names; nil: MaxDeliveries bounds it too
}

var _ policy.Decider = (*DLQ)(nil)

// NewDLQ checks a policy. Errors are [ErrInvalidParameter].
func NewDLQ(c DLQPolicy) (*DLQ, error) {
	unbounded := len(c.Exclude) > 0 && c.MaxDeliveries == 0
	if c.MaxDeliveryCount == -1 {
		c.MaxDeliveries = cmp.Or(c.MaxDeliveries, defaultMaxDeliveries)
	}
	base, err := policy.ProfileNamed(profile)
	if err != nil {
		return nil, err
	}
	rules := policy.Config{
		MaxAttempts: cmp.Or(c.MaxDeliveryCount, DefaultMaxDeliveryCount), MaxDeliveries: c.MaxDeliveries, MaxAge: c.MaxAge,
		NeverDead: c.Exclude, DeadAtOnce: c.Include, Backoff: base.Config.Backoff, ExtendOn: base.Config.ExtendOn,
	}
	for _, r := range base.Config.ClassRules {
		if r.Class == nixie.ClassPermanent {
			r.Class = nixie.ClassUnknown // Include says what dies at once
		}
		rules.ClassRules = append(rules.ClassRules, r)
	}
	q := &DLQ{c: c}
	if q.rules, err = policy.New(rules); err != nil {
		return nil, explain(err)
	}
	rules = q.rules.Config()
	rules.MaxAttempts = -1
	if q.patient, err = policy.New(rules); err != nil {
		return nil, explain(err)
	}
	if rules.MaxDeliveries = policy.MaxCount; unbounded {
		if q.endless, err = policy.New(rules); err != nil {
			return nil, explain(err)
		}
	}
	return q, q.c.check()
}

// check fills in the mailbox, and checks what no policy has.
func (c *DLQPolicy) check() error {
	c.Mailbox = cmp.Or(c.Mailbox, DefaultDLQ)
	matchers, names := slices.Clone(c.Reject), []string{c.Mailbox}
	for _, r := range c.Routes {
		matchers, names = append(matchers, r.When), append(names, r.Mailbox)
	}
	if _, err := policy.New(policy.Config{DeadAtOnce: matchers}); err != nil {
		return explain(err)
	}
	for _, name := range names {
		if err := checkName("mailbox of dead letters", name); err != nil {
			return err
		}
	}
	return nil
}

// Policy returns the policy that diagnoses failures, and says which messages may run.
func (q *DLQ) Policy() *policy.Policy {
	switch {
	case q.endless != nil:
		return q.endless // only its failure shows whether Exclude names it
	case q.c.Decide != nil:
		return q.patient // Decide may retry beyond the count
	}
	return q.rules
}

// Decide implements [policy.Decider].
func (q *DLQ) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	st := q.settle(d, f, q.asked(d, f, now), now)
	if to := q.mailbox(d, st.Failure); st.Burial != nil && to != NoMailbox {
		st.Then = append(st.Then, notice(d, st.Failure, to, !d.Tracking.OfBroker, now))
	}
	return st
}

// settle makes the settlement for a verb that was chosen; "" leaves it to the rules.
func (q *DLQ) settle(d *nixie.Delivery, f *nixie.Failure, verb nixie.Verb, now time.Time) nixie.Settlement {
	p, counted := q.rules, d
	switch {
	case (verb == "" || verb == nixie.Retry) && q.endless != nil && f != nil && policy.AnyHolds(q.c.Exclude, f):
		p = q.endless
	case verb == "" && q.endless != nil && f != nil && q.costsNoAttempt(d, f):
		// Deliveries that were attempts may have failed of what Exclude names: they do not count.
		fewer := *d
		fewer.Deliveries -= min(d.Attempts, d.Deliveries)
		counted = &fewer
	case verb == nixie.Retry:
		p = q.patient
	}
	if verb != "" {
		marked := *f
		marked.Err = nixie.Verdict(verb, f.Err)
		f = &marked
	}
	st := p.Decide(counted, f, now)
	st.Delivery = d
	return st
}

// costsNoAttempt reports whether a delivery ended without an attempt: its holder vanished, or the
// handler gave it back or asked for more time.
func (q *DLQ) costsNoAttempt(d *nixie.Delivery, f *nixie.Failure) bool {
	return d.Abandoned || f.Err != nil && nixie.OutcomeOf(f.Err).Verb == nixie.Release || q.rules.Extends(d, f)
}

// mailbox returns the name of the mailbox that hears of a death.
func (q *DLQ) mailbox(d *nixie.Delivery, f *nixie.Failure) string {
	name := q.c.Mailbox
	for _, r := range q.c.Routes {
		if f != nil && r.When.Holds(f) {
			name = r.Mailbox
			break
		}
	}
	return broker.ChannelName(name, d.Queue)
}

// mailboxes returns the names of those that hear of deaths in source. It refuses source itself, and
// the channel of its letters.
func (q *DLQ) mailboxes(source, letters string) (names []string, err error) {
	templates := []string{q.c.Mailbox}
	for _, r := range q.c.Routes {
		templates = append(templates, r.Mailbox)
	}
	for _, template := range templates {
		switch name := broker.ChannelName(template, source); {
		case template == NoMailbox || slices.Contains(names, name):
		case name == source:
			return nil, invalid("mailbox %s would hear of its own deaths: name another one in DLQPolicy", name)
		case name == letters:
			return nil, invalid("mailbox %s takes the letters of %s as they are, and notices of deaths cannot lie among them: "+
				"name another one in DLQPolicy, or in Letters", name, source)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// asked returns the verb that Decide or Reject choose. What the handler asked for itself, and what
// did not run, is left to the policy.
func (q *DLQ) asked(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Verb {
	if f == nil || f.Err == nil || nixie.OutcomeOf(f.Err).Verb != "" {
		return ""
	}
	if q.c.Decide != nil {
		rules := func() nixie.Verb { return q.settle(d, f, q.rejects(f), now).Verb }
		if verb := q.c.Decide(d, f, rules); verb != "" {
			return verb
		}
	}
	return q.rejects(f)
}

// rejects returns Discard for what Reject names and Exclude does not, otherwise "".
func (q *DLQ) rejects(f *nixie.Failure) nixie.Verb {
	if !policy.AnyHolds(q.c.Exclude, f) && policy.AnyHolds(q.c.Reject, f) {
		return nixie.Discard
	}
	return ""
}
