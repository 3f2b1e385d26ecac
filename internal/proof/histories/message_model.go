package histories

import (
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/nixie-go/nixie"
)

// register holds what the model knows of one message: a register with a fence.
type register struct {
	state  nixie.State  // empty: it was never accepted
	letter nixie.Status // empty: it never died

	number                                              int64 // of the newest lease
	attempts, deliveries, crashes, generation, redrives int
	abandoned                                           bool
	abandonedBy                                         string

	owner                string
	untilLeast, untilMax int64 // when the lease ends, as far as is known
	void                 bool  // its owner is gone or does not know of it

	due   int64 // at the earliest
	ended int64 // when the newest lease that is over had ended, at the earliest
	now   int64 // the store's clock is not before this

	told bool // see Harness.Told
}

// messageModel asks of one message whether an order of the calls explains their
// answers.
func messageModel(told bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{register{told: told}} },
		Step: func(state, input, _ any) []any {
			s, p := state.(register), input.(*part)
			var next []any
			for _, before := range s.expire(p) {
				for _, after := range before.step(p) {
					next = append(next, after)
				}
			}
			return next
		},
	}
	return m.ToModel()
}

// expire lists what may have happened to a message by itself before a call: a
// lease that is over, or whose owner is gone, ends at some claim of anything.
func (s register) expire(p *part) []register {
	if p.writes() {
		s.now = max(s.now, p.early.UnixNano())
	}
	if s.now > p.latest() {
		return nil
	}
	if s.state != nixie.Leased || p.call.Kind == gone || !s.void && p.latest() < s.untilLeast {
		return []register{s}
	}
	swept := s
	if !s.void {
		swept.now, swept.ended = max(s.now, s.untilLeast), s.untilLeast
	}
	swept.state = nixie.Queued
	if !s.abandoned { // who judges runs nothing
		swept.attempts, swept.crashes, swept.abandoned, swept.abandonedBy = s.attempts-1, s.crashes+1, true, s.owner
	}
	return []register{s, swept.free()}
}

// writes reports whether the part is one of those that write. A
// transaction knows the time from its beginning, and readers see what it did only
// after its end: what they know of the time says nothing about it.
func (p *part) writes() bool {
	switch p.call.Kind {
	case Look, LookAll, gone:
		return false
	}
	return p.code != nixie.CodeNotFound
}

// free is the message without a lease, due at once.
func (s register) free() register {
	s.owner, s.untilLeast, s.untilMax, s.void, s.due = "", 0, 0, false, 0
	return s
}

// step lists what a message may be after a part of a call; nothing if the answer
// cannot be.
func (s register) step(p *part) []register {
	if p.code == nixie.CodeOutcomeUnknown {
		happened := *p
		happened.code = ""
		return append([]register{s}, s.stepKnown(&happened, math.MaxInt64)...)
	}
	if p.withheld {
		return append([]register{s}, s.claim(p)...)
	}
	return s.stepKnown(p, p.latest())
}

func (s register) stepKnown(p *part, late int64) []register {
	switch p.call.Kind {
	case Enqueue:
		return s.enqueue(p)
	case Claim:
		return s.claim(p)
	case Extend, Settle, Finish:
		return s.use(p, late)
	case Cancel, Hold, RetryNow:
		return s.amend(p)
	case Redrive, Drop:
		return s.resolve(p)
	case Look, LookAll:
		return s.look(p)
	case gone:
		if s.state == nixie.Leased && s.owner == p.owner {
			s.void = true
		}
		return []register{s}
	}
	return nil
}

func (s register) enqueue(p *part) []register {
	if s.state != "" {
		return nil
	}
	s.state, s.generation = nixie.Queued, 1
	for _, m := range p.call.Messages {
		if m.ID == p.message {
			s.due = s.now + int64(m.Delay)
		}
	}
	return []register{s}
}

// claim hands the message out. Of a claim that no client knows of, or that does not name
// the message, no client holds the lease: it may end at any time.
func (s register) claim(p *part) []register {
	if s.state != nixie.Queued {
		return nil
	}
	s.state = nixie.Leased
	s.number++
	s.deliveries++
	if !s.abandoned {
		s.attempts++
	}
	s.owner = p.owner
	l := p.loan
	if l == nil {
		s.now = max(s.now, s.due)
		s.void = true
		return []register{s}
	}
	until := l.Until.UnixNano()
	at := until - int64(p.call.Lease)
	same := l.Number == s.number && l.Attempts == s.attempts && l.Deliveries == s.deliveries && l.Crashes == s.crashes &&
		l.Generation == s.generation && l.Redrives == s.redrives && l.Owner == s.owner &&
		l.Abandoned == s.abandoned && l.AbandonedBy == s.abandonedBy
	if !same || at < s.least(p) || at < s.due || at < s.ended || at > p.latest() {
		return nil
	}
	s.now, s.untilLeast, s.untilMax = max(s.now, at), until, until
	return []register{s}
}

// least is the earliest time that a part may have been told: that of its own start, if
// others may have gone before it since.
func (s register) least(p *part) int64 {
	if s.told {
		return p.early.UnixNano()
	}
	return s.now
}

// use applies what the holder of a lease does, or a client that once held it.
func (s register) use(p *part, late int64) []register {
	current := s.state == nixie.Leased && s.number == p.loan.Number
	switch p.code {
	case nixie.CodeLeaseLost:
		if current && !s.void {
			if s.now = max(s.now, s.untilLeast); s.now > late {
				return nil // it was current all the time
			}
		}
		return []register{s}
	case "":
		if !current || !s.void && s.least(p) >= s.untilMax {
			return nil
		}
		return []register{s.settle(p, late)}
	}
	return nil
}

func (s register) settle(p *part, late int64) register {
	if p.call.Kind == Extend {
		s.untilLeast, s.untilMax = s.now+int64(p.call.Lease), min(late, math.MaxInt64-int64(forever))+int64(p.call.Lease)
		return s
	}
	verb := p.call.Verb
	if p.call.Kind == Finish {
		verb = nixie.Complete
	}
	s = s.free()
	switch verb {
	case nixie.Complete:
		return s.end(nixie.Succeeded, nixie.StatusResolved)
	case nixie.Discard:
		return s.end(nixie.Discarded, nixie.StatusDiscarded)
	case nixie.Retry:
		if !s.abandoned {
			s.crashes = 0
		}
		s.state, s.due, s.abandoned, s.abandonedBy = nixie.Queued, s.now+int64(p.call.Delay), false, ""
	case nixie.Release:
		s.state, s.due = nixie.Queued, s.now+int64(p.call.Delay)
		if !s.abandoned {
			s.attempts--
		}
	case nixie.Hold:
		return s.die(nixie.StatusReview)
	default:
		return s.die(nixie.StatusOpen)
	}
	return s
}

// end is the end of a message that did not die; a letter that was redriven goes
// with it.
func (s register) end(state nixie.State, letter nixie.Status) register {
	s = s.free()
	s.state, s.abandoned, s.abandonedBy = state, false, ""
	if s.letter != "" {
		s.letter = letter
	}
	return s
}

func (s register) die(letter nixie.Status) register {
	s = s.end(nixie.Dead, letter)
	s.letter = letter
	return s
}

func (s register) amend(p *part) []register {
	queued, leased := s.state == nixie.Queued, s.state == nixie.Leased
	switch p.code {
	case nixie.CodeNotFound:
		return s.only(s.state == "")
	case nixie.CodeConflict:
		return s.only(s.state != "" && !queued && (!leased || p.call.Kind != Cancel))
	case "":
	default:
		return nil
	}
	switch {
	case p.call.Kind == Cancel && (queued || leased):
		return []register{s.end(nixie.Canceled, nixie.StatusDiscarded)}
	case p.call.Kind == Hold && queued:
		return []register{s.die(nixie.StatusReview)}
	case p.call.Kind == RetryNow && queued:
		s.due = min(s.due, s.now)
		return []register{s}
	}
	return nil
}

func (s register) only(ok bool) []register {
	if !ok {
		return nil
	}
	return []register{s}
}

// resolve moves the letter on. A redrive is also refused for the sake of a dedupe
// key, of which another model knows.
func (s register) resolve(p *part) []register {
	waits := s.state == nixie.Dead && s.letter != nixie.StatusDiscarded
	switch {
	case p.code == nixie.CodeNotFound:
		return s.only(s.letter == "")
	case p.code == nixie.CodeConflict:
		return s.only(s.letter != "" && (!waits || p.call.Kind == Redrive && p.keyed))
	case p.code != "" || !waits:
		return nil
	case p.call.Kind == Drop:
		s.letter = nixie.StatusDiscarded
		return []register{s}
	}
	s = s.free()
	s.state, s.letter, s.due = nixie.Queued, nixie.StatusRedriving, s.now
	s.generation++
	s.redrives++
	s.attempts, s.deliveries, s.crashes = 0, 0, 0
	return []register{s}
}

func (s register) look(p *part) []register {
	f := p.found
	if f == nil {
		return s.only(s.state == "")
	}
	return s.only(f.State == s.state && f.Attempts == s.attempts && f.Deliveries == s.deliveries &&
		f.Crashes == s.crashes && f.Generation == s.generation && f.Redrives == s.redrives && f.Owner == s.owner)
}
