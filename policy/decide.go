package policy

import (
	"cmp"
	"time"

	"github.com/nixie-go/nixie"
)

// facts are the input of the rules of Decide.
type facts struct {
	d     *nixie.Delivery
	f     *nixie.Failure
	asked nixie.Outcome
	now   time.Time
	c     *Config // the values for this type and reason
}

// vanished reports whether the holder of the message vanished.
func (q facts) vanished() bool { return q.d.Abandoned }

// failures returns how many failures the backoff of an answer counts: those of tries grow it too.
func (q facts) failures(a answer) int {
	if a.waiver == nixie.WaiveTry {
		return q.d.Attempts + q.d.Patience.Tries
	}
	return q.d.Attempts
}

// answer is the result of a rule. An answer with a cause and without a verb leaves the verb to
// on_exhausted.
type answer struct {
	verb   nixie.Verb
	cause  nixie.Cause
	waiver nixie.Waiver
	late   bool // a retry after max_attempts, until min_age is over
}

// rule is one rule of Decide. It gives no answer if it does not apply.
type rule struct {
	name, meaning string
	answer        func(*Policy, facts) (answer, bool)
}

// rules are the rules in their order; see the comment of the package.
var rules = []rule{
	{"success", "no failure: complete", (*Policy).success},
	{"asked", "the handler asked to discard, bury, hold or halt", (*Policy).askedToEnd},
	{"expired", "past its own expiry: give up", (*Policy).expired},
	{"max-age", "older than max_age, since its last redrive if there was one: give up", (*Policy).tooOld},
	{"max-deliveries", "claimed max_deliveries times in this generation: give up", (*Policy).tooManyDeliveries},
	{"max-crashes", "max_crashes holders vanished in a row, the last with it alone: give up as poison", (*Policy).tooManyCrashes},
	{"released", "the handler asked for a release: back into the queue", (*Policy).released},
	{"extend-on", "an extend_on matcher holds: no failure, back into the queue", (*Policy).extended},
	{"try", "it tried an open breaker: back into the queue, and it costs nothing", (*Policy).tried},
	{"never-dead", "a never_dead matcher holds: retry", (*Policy).neverDead},
	{"permanent", "a dead_at_once matcher holds, or the class is permanent: give up", (*Policy).permanent},
	{"crashed", "its holder vanished, which is no attempt: retry at once", (*Policy).crashed},
	{ruleMinAge, "executed max_attempts times, but time may heal it, and min_age is not over: retry", (*Policy).tooYoung},
	{"max-attempts", "executed max_attempts times in this generation: give up", (*Policy).tooManyAttempts},
	{"retry-budget", "the waits of this generation would exceed retry_budget: give up", (*Policy).tooMuchWaiting},
	{"retry", "otherwise: retry after the backoff", (*Policy).retry},
}

// DecisionRules lists the rules of Decide in their order: the name in Name, the number in Value and
// the effect in Meaning.
func DecisionRules() []Row {
	var rows []Row
	for i, s := range rules {
		rows = append(rows, Row{s.name, count(i + 1), s.meaning})
	}
	return rows
}

// Decide implements [Decider]. It does not change the failure that it is given. The settlement has
// a copy with Decision and NextAt filled in; for a message that died of vanished holders the copy
// also has reason poison.
func (p *Policy) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	if f == nil { // the rule success, faster
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	_, s := p.decide(d, f, now)
	return s
}

// decide is Decide; it also returns the name of the rule that decided.
func (p *Policy) decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) (rule string, settled nixie.Settlement) {
	q := facts{d: d, f: f, now: now, c: &p.config}
	if f != nil {
		q.asked = marksOf(f.Err)
		q.c = p.of(d.Type, f.Reason)
	}
	var given answer
	for _, s := range rules {
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

// Extends reports whether an error is no failure but asks for more time, by an extend_on matcher.
// The holder of the delivery then extends its lease and runs the handler again. If it does not,
// Decide gives the message back and refunds its attempt; over max_deliveries the error becomes a
// failure.
func (p *Policy) Extends(d *nixie.Delivery, f *nixie.Failure) bool {
	return f != nil && AnyHolds(p.of(d.Type, f.Reason).ExtendOn, f)
}

// settle makes the settlement of an answer.
func (p *Policy) settle(q facts, a answer) nixie.Settlement {
	s := nixie.Settlement{Delivery: q.d, Verb: a.verb, Waiver: a.waiver}
	switch a.verb {
	case nixie.Complete:
		return s
	case nixie.Release:
		s.Waiver = q.asked.Waiver()
		s.Delay = min(max(q.asked.After, q.untilKnown(), MinSpacing), nixie.MaxDelay)
		return s
	}
	f := *q.f
	f.Decision = a.verb
	s.Failure = &f
	switch a.verb {
	case nixie.Retry:
		if !q.vanished() {
			s.Delay = min(max(q.wait(a, randomOf(q.d)), q.asked.After), nixie.MaxDelay)
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

func (p *Policy) burial(q facts, f *nixie.Failure, a answer) *nixie.Burial {
	b := nixie.Burial{Cause: a.cause, Status: nixie.StatusOpen}
	b.Redrivable, b.NeedsReview, b.Rule = triage(a.verb, a.cause, f.Reason)
	var door string
	b.Signature, b.Fingerprint, door = p.group(f, &q.d.Message)
	b.Rule = cmp.Or(door, b.Rule)
	if !b.NeedsReview && AnyHolds(q.c.ReviewOn, q.f) {
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

func (p *Policy) success(q facts) (answer, bool) {
	return answer{verb: nixie.Complete}, q.f == nil
}

func (p *Policy) askedToEnd(q facts) (answer, bool) {
	switch q.asked.Verb {
	case nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt:
		return answer{verb: q.asked.Verb, cause: nixie.CausePermanent}, true
	}
	return answer{}, false
}

func (p *Policy) tooOld(q facts) (answer, bool) {
	return answer{cause: nixie.CauseMaxAge}, q.c.aged(q.d, q.now)
}

func (p *Policy) tooManyDeliveries(q facts) (answer, bool) {
	return answer{cause: nixie.CauseExhausted}, reached(countedClaims(q.d), q.c.MaxDeliveries)
}

func (p *Policy) tooManyCrashes(q facts) (answer, bool) {
	return answer{cause: nixie.CausePoison}, q.vanished() && q.c.poisonous(q.d)
}

func (p *Policy) crashed(q facts) (answer, bool) {
	return answer{verb: nixie.Retry}, q.vanished()
}

func (p *Policy) expired(q facts) (answer, bool) {
	return answer{cause: nixie.CauseExpired}, past(q.d.ExpiresAt, q.now)
}

func (p *Policy) released(q facts) (answer, bool) {
	return answer{verb: nixie.Release}, q.asked.Verb == nixie.Release && !q.staysUnknown()
}

func (p *Policy) extended(q facts) (answer, bool) {
	return answer{verb: nixie.Release}, p.Extends(q.d, q.f)
}

// tried sends a message back that could not find out more than that the trouble lasts. With
// max_attempts 1 it is tried only once, and that is its attempt.
func (p *Policy) tried(q facts) (answer, bool) {
	free := q.d.Tracking.Trial == nixie.TrialAny || q.d.Tracking.Trial == nixie.TrialHealing && Heals(q.f)
	if !free || q.c.MaxAttempts == 1 || q.d.Patience.Tries >= maxTries {
		return answer{}, false
	}
	_, over := p.tooMuchWaiting(q)
	return answer{verb: nixie.Retry, waiver: nixie.WaiveTry}, !over
}

func (p *Policy) neverDead(q facts) (answer, bool) {
	return answer{verb: nixie.Retry}, AnyHolds(q.c.NeverDead, q.f)
}

func (p *Policy) permanent(q facts) (answer, bool) {
	if q.asked.Verb == nixie.Retry {
		return answer{}, false
	}
	dead := q.f.Class == nixie.ClassPermanent || AnyHolds(q.c.DeadAtOnce, q.f)
	return answer{cause: nixie.CausePermanent}, dead
}

// tooYoung keeps a message beyond max_attempts, though not beyond retry_budget.
func (p *Policy) tooYoung(q facts) (answer, bool) {
	young := reached(q.d.Attempts, q.c.MaxAttempts) && q.d.Attempts < q.c.MaxAttempts+lateAttempts && q.c.patient(q)
	if _, over := p.tooMuchWaiting(q); over {
		return answer{}, false
	}
	return answer{verb: nixie.Retry, late: true}, young
}

// patient reports whether time may heal the failure, and min_age is not over.
func (c *Config) patient(q facts) bool {
	if c.MinAge == none || !Heals(q.f) {
		return false
	}
	return q.failing() < c.MinAge
}

// failing returns for how long the message has failed in this generation.
func (q facts) failing() time.Duration {
	since := q.d.Patience.FailingSince
	if since.IsZero() {
		return 0
	}
	return q.now.Sub(since)
}

// wait returns the wait before the next attempt. A late one waits for an eighth of min_age at
// least, and no longer than what is left of it: few attempts come, and the last one in time.
func (q facts) wait(a answer, random uint64) time.Duration {
	wait := q.c.Backoff.Delay(q.failures(a), random)
	if !a.late {
		return wait
	}
	return max(min(wait, q.c.MinAge-q.failing()), q.c.MinAge/lateAttempts)
}

func (p *Policy) tooManyAttempts(q facts) (answer, bool) {
	return answer{cause: nixie.CauseExhausted}, reached(q.d.Attempts, q.c.MaxAttempts)
}

// tooMuchWaiting adds the waits up to the next one. It assumes that all failures of this generation
// had the same reason as this one.
func (p *Policy) tooMuchWaiting(q facts) (answer, bool) {
	if q.c.RetryBudget == none {
		return answer{}, false
	}
	var waited time.Duration
	for n := 1; n <= min(q.d.Attempts, MaxBudgeted) && waited <= q.c.RetryBudget; n++ {
		wait := q.c.Backoff.Delay(n, randomFor(q.d.ID, q.d.Generation, n))
		if n == q.d.Attempts {
			wait = max(wait, q.asked.After)
		}
		waited += min(wait, nixie.MaxDelay)
	}
	return answer{cause: nixie.CauseExhausted}, waited > q.c.RetryBudget
}

func (p *Policy) retry(facts) (answer, bool) { return answer{verb: nixie.Retry}, true }

func reached(n, limit int) bool { return limit != none && n >= limit }

func past(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
