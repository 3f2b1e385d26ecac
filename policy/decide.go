package policy

import (
	"time"

	"github.com/nixie-go/nixie"
)

// question is what the rules of Decide look at.
type question struct {
	d     *nixie.Delivery
	f     *nixie.Failure
	asked nixie.Outcome
	now   time.Time
	c     *Config // what applies to this type and reason
}

// vanished reports whether the question is about a holder that vanished.
func (q question) vanished() bool { return q.d.Abandoned }

// answer is what a rule says. A burying answer without a verb leaves it to
// on_exhausted.
type answer struct {
	verb  nixie.Verb
	cause nixie.Cause
}

// stage is one rule of Decide. It gives no answer where it does not apply.
type stage struct {
	name, meaning string
	answer        func(*Policy, question) (answer, bool)
}

// stages are the rules in their order; see the comment of the package.
var stages = []stage{
	{"success", "no failure: complete", (*Policy).success},
	{"asked", "the handler asked to discard, bury, hold or halt", (*Policy).askedToEnd},
	{"expired", "past its own expiry: give up", (*Policy).expired},
	{"max-age", "older than max_age: give up", (*Policy).tooOld},
	{"max-deliveries", "claimed max_deliveries times in this life: give up", (*Policy).tooManyDeliveries},
	{"max-crashes", "max_crashes holders vanished in a row, the last with it alone: give up as poison", (*Policy).tooManyCrashes},
	{"released", "the handler asked for a release: back into the queue", (*Policy).released},
	{"extend-on", "an extend_on matcher holds: no failure, back into the queue", (*Policy).extended},
	{"never-dead", "a never_dead matcher holds: retry", (*Policy).neverDead},
	{"permanent", "a dead_at_once matcher holds, or the class is permanent: give up", (*Policy).permanent},
	{"crashed", "its holder vanished, which is no attempt: retry at once", (*Policy).crashed},
	{"max-attempts", "executed max_attempts times in this life: give up", (*Policy).tooManyAttempts},
	{"retry-budget", "the waits of this life would exceed retry_budget: give up", (*Policy).tooMuchWaiting},
	{"retry", "otherwise: retry after the backoff", (*Policy).retry},
}

// DecisionRules lists the rules of Decide, first asked first: the name in Name, what it
// does in Meaning.
func DecisionRules() []Row {
	var rows []Row
	for i, s := range stages {
		rows = append(rows, Row{s.name, count(i + 1), s.meaning})
	}
	return rows
}

// Decide implements [Decider]. It does not change the failure it is given: the
// one in the settlement is a copy with Decision and NextAt filled in and, for a
// message that died of vanished holders, reason poison.
func (p *Policy) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	if f == nil { // the rule success, without the questions that it does not ask
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	_, s := p.decide(d, f, now)
	return s
}

// decide is Decide with the name of the rule that decided.
func (p *Policy) decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) (rule string, settled nixie.Settlement) {
	q := question{d: d, f: f, now: now, c: &p.config}
	if f != nil {
		q.asked = marksOf(f.Err)
		q.c = p.of(d.Type, f.Reason)
	}
	var given answer
	for _, s := range stages {
		if a, ok := s.answer(p, q); ok {
			rule, given = s.name, a
			break
		}
	}
	if given.verb == "" {
		given.verb = q.c.OnExhausted
	}
	return rule, p.settle(q, given)
}

// Extends reports whether an error is no failure but asks for more time, by an
// extend_on matcher. Whoever holds the delivery then extends its lease and runs
// the handler again; where that is not done, Decide gives the message back, its
// attempt refunded. An error that exceeds max_deliveries that way is a failure.
func (p *Policy) Extends(d *nixie.Delivery, f *nixie.Failure) bool {
	return f != nil && anyHolds(p.of(d.Type, f.Reason).ExtendOn, f)
}

// settle writes an answer down.
func (p *Policy) settle(q question, a answer) nixie.Settlement {
	s := nixie.Settlement{Delivery: q.d, Verb: a.verb}
	switch a.verb {
	case nixie.Complete:
		return s
	case nixie.Release:
		s.Delay = min(max(q.asked.After, MinSpacing), nixie.MaxDelay)
		return s
	}
	f := *q.f
	f.Decision = a.verb
	s.Failure = &f
	switch a.verb {
	case nixie.Retry:
		if !q.vanished() {
			s.Delay = q.c.Backoff.Delay(q.d.Attempts, throw(q.d))
			s.Delay = min(max(s.Delay, q.asked.After), nixie.MaxDelay)
		}
		f.NextAt = q.now.Add(s.Delay)
	case nixie.Discard:
		s.Note = f.Text
	default:
		if a.cause == nixie.CausePoison && f.Reason == nixie.ReasonLeaseExpired {
			f.Reason, f.Class = nixie.ReasonPoison, nixie.ClassPermanent
		}
		s.Burial = p.burial(q, &f, a)
	}
	return s
}

func (p *Policy) burial(q question, f *nixie.Failure, a answer) *nixie.Burial {
	b := nixie.Burial{Cause: a.cause, Status: nixie.StatusOpen}
	b.Signature, b.Fingerprint = p.groups.of(f)
	b.Redrivable, b.NeedsReview, b.Rule = triage(a.verb, a.cause, f.Reason)
	if !b.NeedsReview && anyHolds(q.c.ReviewOn, q.f) {
		b.NeedsReview, b.Rule = true, "option:review_on"
	}
	switch {
	case reached(q.d.Redrives, q.c.MaxRedrives):
		b.Status = nixie.StatusQuarantined
	case a.verb == nixie.Hold:
		b.Status = nixie.StatusReview
	}
	return &b
}

func (p *Policy) success(q question) (answer, bool) {
	return answer{verb: nixie.Complete}, q.f == nil
}

func (p *Policy) askedToEnd(q question) (answer, bool) {
	switch q.asked.Verb {
	case nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt:
		return answer{q.asked.Verb, nixie.CausePermanent}, true
	}
	return answer{}, false
}

func (p *Policy) tooOld(q question) (answer, bool) {
	return answer{cause: nixie.CauseMaxAge}, q.c.aged(q.d, q.now)
}

func (p *Policy) tooManyDeliveries(q question) (answer, bool) {
	return answer{cause: nixie.CauseExhausted}, reached(claimed(q.d), q.c.MaxDeliveries)
}

func (p *Policy) tooManyCrashes(q question) (answer, bool) {
	return answer{cause: nixie.CausePoison}, q.vanished() && q.c.poisonous(q.d)
}

func (p *Policy) crashed(q question) (answer, bool) {
	return answer{verb: nixie.Retry}, q.vanished()
}

func (p *Policy) expired(q question) (answer, bool) {
	return answer{cause: nixie.CauseExpired}, past(q.d.ExpiresAt, q.now)
}

func (p *Policy) released(q question) (answer, bool) {
	return answer{verb: nixie.Release}, q.asked.Verb == nixie.Release
}

func (p *Policy) extended(q question) (answer, bool) {
	return answer{verb: nixie.Release}, p.Extends(q.d, q.f)
}

func (p *Policy) neverDead(q question) (answer, bool) {
	return answer{verb: nixie.Retry}, anyHolds(q.c.NeverDead, q.f)
}

func (p *Policy) permanent(q question) (answer, bool) {
	if q.asked.Verb == nixie.Retry {
		return answer{}, false
	}
	dead := q.f.Class == nixie.ClassPermanent || anyHolds(q.c.DeadAtOnce, q.f)
	return answer{cause: nixie.CausePermanent}, dead
}

func (p *Policy) tooManyAttempts(q question) (answer, bool) {
	return answer{cause: nixie.CauseExhausted}, reached(q.d.Attempts, q.c.MaxAttempts)
}

// tooMuchWaiting adds the waits up to the next one, as if all failures of this
// life had been of this kind.
func (p *Policy) tooMuchWaiting(q question) (answer, bool) {
	if q.c.RetryBudget == none {
		return answer{}, false
	}
	var waited time.Duration
	for n := 1; n <= min(q.d.Attempts, MaxBudgeted) && waited <= q.c.RetryBudget; n++ {
		wait := q.c.Backoff.Delay(n, diceOf(q.d.ID, q.d.Generation, n))
		if n == q.d.Attempts {
			wait = max(wait, q.asked.After)
		}
		waited += min(wait, nixie.MaxDelay)
	}
	return answer{cause: nixie.CauseExhausted}, waited > q.c.RetryBudget
}

func (p *Policy) retry(question) (answer, bool) { return answer{verb: nixie.Retry}, true }

func reached(n, limit int) bool { return limit != none && n >= limit }

func past(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
