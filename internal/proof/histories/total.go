package histories

import (
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
)

// sending holds what is known of a message from its enqueue alone.
type sending struct{ queue, key, stream string }

// tally is the queue as a whole, in Jepsen's words.
type tally struct {
	attempted, acknowledged, seen, lost, unexpected, duplicated, recovered int
}

func (t tally) String() string {
	return fmt.Sprintf("%d attempted, %d acknowledged, %d seen; %d lost, %d unexpected, %d duplicated, %d recovered",
		t.attempted, t.acknowledged, t.seen, t.lost, t.unexpected, t.duplicated, t.recovered)
}

func (t tally) add(o tally) tally {
	return tally{
		t.attempted + o.attempted, t.acknowledged + o.acknowledged, t.seen + o.seen, t.lost + o.lost,
		t.unexpected + o.unexpected, t.duplicated + o.duplicated, t.recovered + o.recovered,
	}
}

// total compares what went in with what came out: by a claim, or by how it ended.
func (v *verdict) total(all []*event, sent map[nixie.ID]sending, last []Found) tally {
	acknowledged, unknown, seen := map[nixie.ID]bool{}, map[nixie.ID]bool{}, map[nixie.ID]bool{}
	type ending struct {
		message    nixie.ID
		generation int
	}
	ends := map[ending]int{}
	for _, e := range all {
		for _, p := range e.parts() {
			switch {
			case e.call.Kind == Enqueue && p.code == "":
				acknowledged[p.message] = true
			case e.call.Kind == Enqueue:
				unknown[p.message] = true
			case e.call.Kind == Claim:
				seen[p.message] = true
			case p.code == "" && p.loan != nil && p.ends():
				ends[ending{p.message, p.loan.Generation}]++
			}
		}
	}
	t := tally{attempted: len(sent), acknowledged: len(acknowledged)}
	there := map[nixie.ID]bool{}
	for _, f := range last {
		there[f.ID] = true
		if f.State == nixie.Queued || f.State == nixie.Leased {
			v.say("message %s is %s although all was worked off", short(f.ID), f.State)
			continue
		}
		seen[f.ID] = true
	}
	for id := range acknowledged {
		if !seen[id] || !there[id] {
			t.lost++
			v.say("message %s was acknowledged and is lost", short(id))
		}
	}
	for id := range seen {
		switch {
		case acknowledged[id]:
		case unknown[id]:
			t.recovered++
		default:
			t.unexpected++
			v.say("message %s came out and was never taken in", short(id))
		}
	}
	for e, n := range ends {
		if n > 1 {
			t.duplicated++
			v.say("generation %d of message %s ended %d times", e.generation, short(e.message), n)
		}
	}
	t.seen = len(seen)
	return t
}

// lookAtEffects compares the ledger with the completions that wrote to it. An
// effect that is there tells that its completion happened, one that is not that
// it did not.
func (v *verdict) lookAtEffects(all []*event, effects []Effect) {
	type generation struct {
		message    nixie.ID
		generation int
	}
	rows, perGeneration := map[int64]int{}, map[generation]int{}
	for _, e := range effects {
		rows[e.Number]++
		perGeneration[generation{e.Message, e.Generation}]++
	}
	for l, n := range perGeneration {
		if n > 1 {
			v.say("generation %d of message %s has %d effects", l.generation, short(l.message), n)
		}
	}
	for _, e := range all {
		if e.call.Kind != Finish {
			continue
		}
		n := rows[e.call.Effect]
		switch {
		case e.answer.Code == nixie.CodeOutcomeUnknown && n == 0:
			e.answer.Code = nixie.CodeUnavailable
		case e.answer.Code == nixie.CodeOutcomeUnknown && n == 1:
			e.answer.Code, e.to, e.late = "", open, e.early.Add(forever)
		case (e.answer.Code == "") != (n == 1) || n > 1:
			v.say("effect %d is there %d times: %s", e.call.Effect, n, e.line(anyMessage))
		}
	}
}

// lookAtFollowers compares what followed settlements with these: either all that is to follow one
// is there once, or nothing is. Like an effect, it tells what became of one that is unknown.
func (v *verdict) lookAtFollowers(all []*event, followed []string) {
	v.followed = len(followed)
	there := map[string]int{}
	for _, key := range followed {
		there[key]++
	}
	for _, e := range all {
		if e.call.Follows == 0 {
			continue
		}
		for i := range e.call.Loans {
			var times [followers]int
			for n := range times {
				key := e.call.follower(i, n)
				times[n] = there[key]
				delete(there, key)
			}
			code, happened := e.answer.part(i), times[0] == 1
			whole := times[0] <= 1 && slices.Max(times[:]) == slices.Min(times[:])
			switch {
			case !whole || code != nixie.CodeOutcomeUnknown && happened != (code == ""):
				v.say("what is to follow message %s is there %d times: %s", short(e.call.Loans[i].ID), times, e.line(anyMessage))
			case code == nixie.CodeOutcomeUnknown:
				e.tell(i, happened)
			}
		}
	}
	for key, n := range there {
		v.say("message %s followed %d times, and no settlement had it", key, n)
	}
}

// tell notes whether the part of a call about its i-th loan has happened, at some time after the
// call began.
func (e *event) tell(i int, happened bool) {
	if len(e.answer.Parts) == 0 {
		e.answer.Parts, e.answer.Code = slices.Repeat([]nixie.Code{e.answer.Code}, len(e.call.Loans)), ""
	}
	e.answer.Parts[i] = nixie.CodeUnavailable
	if happened {
		e.answer.Parts[i], e.to, e.late = "", open, e.early.Add(forever)
	}
}
