package histories

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/nixie-go/nixie"
)

// Bounds that keep the search for an order short.
const (
	maxParts   = 400
	maxUnknown = 20
	patience   = 20 * time.Second // for one partition
)

// verdict holds what is wrong with a history, and what it was made of.
type verdict struct {
	problems []string
	queue    tally
	calls    int
	followed int // messages, after settlements
	unknown  int
	kills    int
}

func (v *verdict) say(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge reads a record after everything was looked at once more.
func judge(r *record, sent map[nixie.ID]sending, last Answer, effects []Effect, blocks, told bool) *verdict {
	v := &verdict{calls: len(r.all)}
	for _, e := range r.all {
		v.lookAtReceipts(e)
	}
	v.lookAtEffects(r.all, effects) // first: this and the next tell what became of unknown settlements
	v.lookAtFollowers(r.all, last.Followed)
	for _, e := range r.all {
		v.lookAtCodes(e)
		if e.unknown() {
			v.unknown++
		}
	}
	v.queue = v.total(r.all, sent, last.Found)
	parts := allParts(r.all, sent)
	v.search(r.all, "message %s", messageModel(told), byMessage(parts))
	v.search(r.all, "dedupe key %s", keyModel(), byKey(r.all, parts, sent))
	v.search(r.all, "stream %s", streamModel(blocks), byStream(parts))
	return v
}

// lookAtReceipts finds messages that were accepted without a receipt.
func (v *verdict) lookAtReceipts(e *event) {
	if e.call.Kind == Enqueue && e.answer.Code == "" && len(e.answer.Receipts) != len(e.call.Messages) {
		v.say("%d receipts for %d messages: %s: %s", len(e.answer.Receipts), len(e.call.Messages), e.line(anyMessage), e.answer.Text)
		e.answer.Code = nixie.CodeInternal
	}
}

// lookAtCodes finds answers that no call may get.
func (v *verdict) lookAtCodes(e *event) {
	codes := append([]nixie.Code{e.answer.Code}, e.answer.Parts...)
	allowed := []nixie.Code{"", nixie.CodeUnavailable, nixie.CodeOutcomeUnknown}
	switch e.call.Kind {
	case Enqueue:
		if !e.answer.Holder.IsZero() {
			allowed = append(allowed, nixie.CodeConflict)
		}
	case Extend, Settle, Finish:
		allowed = append(allowed, nixie.CodeLeaseLost)
	case Cancel, Hold, RetryNow, Redrive, Drop:
		allowed = append(allowed, nixie.CodeConflict, nixie.CodeNotFound)
	}
	for _, c := range codes {
		if !slices.Contains(allowed, c) {
			v.say("an answer that cannot be: %s: %s", e.line(anyMessage), e.answer.Text)
			return
		}
	}
}

func anyMessage(nixie.ID) bool { return true }

// allParts lists the parts of all events. A claim that no client knows of may have
// taken any message of its queue, and one that lasted longer than its leases any that
// it does not name; the end of a process is about what it claimed.
func allParts(all []*event, sent map[nixie.ID]sending) []*part {
	var parts []*part
	claimed := map[string]map[nixie.ID]bool{}
	var ends []*event
	add := func(p part) {
		p.keyed, p.stream = sent[p.message].key != "", sent[p.message].stream
		parts = append(parts, &p)
	}
	for _, e := range all {
		switch {
		case e.call.Kind == gone:
			ends = append(ends, e)
			continue
		case e.call.Kind == Claim && e.answer.Code == nixie.CodeOutcomeUnknown:
			for id, s := range sent {
				if s.queue == e.call.Queue {
					add(part{event: e, message: id, code: nixie.CodeOutcomeUnknown})
				}
			}
			continue
		}
		for _, p := range e.parts() {
			if e.call.Kind == Claim {
				if claimed[e.owner] == nil {
					claimed[e.owner] = map[nixie.ID]bool{}
				}
				claimed[e.owner][p.message] = true
			}
			add(p)
		}
		if e.outlasted() {
			for id, s := range sent {
				if s.queue == e.call.Queue && !e.names(id) {
					add(part{event: e, message: id, withheld: true})
				}
			}
		}
	}
	for _, e := range ends {
		for id := range claimed[e.owner] {
			add(part{event: e, message: id})
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.from, b.from) })
	return parts
}

func byMessage(parts []*part) map[string][]*part {
	groups := map[string][]*part{}
	for _, p := range parts {
		groups[short(p.message)] = append(groups[short(p.message)], p)
	}
	return groups
}

// byKey groups what takes a dedupe key, frees it or tells who has it.
func byKey(all []*event, parts []*part, sent map[nixie.ID]sending) map[string][]*part {
	groups := map[string][]*part{}
	for _, p := range parts {
		key := sent[p.message].key
		moves := p.code == "" || p.code == nixie.CodeOutcomeUnknown
		if key != "" && moves && (p.call.Kind == Enqueue || p.call.Kind == Redrive || p.ends()) {
			groups[key] = append(groups[key], p)
		}
	}
	for _, e := range all {
		if e.call.Kind != Enqueue {
			continue
		}
		for i, m := range e.call.Messages {
			switch {
			case m.Key == "":
			case e.answer.Code == "" && e.answer.Receipts[i].Duplicate:
				groups[m.Key] = append(groups[m.Key], &part{event: e, message: m.ID, refusedBy: e.answer.Receipts[i].ID})
			case e.answer.Code == nixie.CodeConflict && m.Refuse && sent[e.answer.Holder].key == m.Key:
				groups[m.Key] = append(groups[m.Key], &part{event: e, message: m.ID, refusedBy: e.answer.Holder})
			}
		}
	}
	return groups
}

// byStream groups what moves the line of a stream. Messages of one stream that
// come in by one call join the line together.
func byStream(parts []*part) map[string][]*part {
	groups := map[string][]*part{}
	type joining struct {
		call   *event
		stream string
	}
	joined := map[joining]bool{}
	for _, p := range parts {
		moves := p.code == "" || p.code == nixie.CodeOutcomeUnknown
		known := p.call.Kind != Claim || p.loan != nil // where no client knows of a claim nothing is to be seen
		relevant := p.call.Kind == Enqueue || p.call.Kind == Claim || p.call.Kind == Redrive || p.call.Kind == Drop || p.ends()
		if p.stream == "" || !moves || !known || !relevant {
			continue
		}
		if p.call.Kind == Enqueue {
			if joined[joining{p.event, p.stream}] {
				continue
			}
			joined[joining{p.event, p.stream}] = true
		}
		groups[p.stream] = append(groups[p.stream], p)
	}
	return groups
}

// search looks for an order of the parts of each group that explains the answers.
func (v *verdict) search(all []*event, what string, m porcupine.Model, groups map[string][]*part) {
	for name, parts := range groups {
		ops := make([]porcupine.Operation, len(parts))
		unknown := 0
		for i, p := range parts {
			ops[i] = porcupine.Operation{ClientId: p.client, Input: p, Call: p.from, Return: p.end()}
			if ops[i].Return == open {
				unknown++
			}
		}
		if len(ops) > maxParts || unknown > maxUnknown {
			v.say(what+" has %d calls, %d of unknown outcome: make histories shorter", name, len(ops), unknown)
			continue
		}
		switch porcupine.CheckOperationsTimeout(m, ops, patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			v.say(what+": no order was found in %s, and none was excluded", name, patience)
		default:
			v.say(what+": no order of these calls explains their answers; those with a ! are left over:\n%s", name,
				lines(all, parts, explained(m, ops)))
		}
	}
}

// explained lists the calls of the longest order that explains its answers.
func explained(m porcupine.Model, ops []porcupine.Operation) map[*event]bool {
	_, info := porcupine.CheckOperationsVerbose(m, ops, patience)
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	in := map[*event]bool{}
	for _, op := range longest {
		in[op.Input.(*part).event] = true
	}
	return in
}

// lines shows the events of a group.
func lines(all []*event, parts []*part, explained map[*event]bool) string {
	in, about := map[*event]bool{}, map[nixie.ID]bool{}
	for _, p := range parts {
		in[p.event], about[p.message] = true, true
	}
	var b strings.Builder
	for _, e := range all {
		if !in[e] {
			continue
		}
		mark := "  "
		if !explained[e] {
			mark = "! "
		}
		b.WriteString(mark + e.line(func(id nixie.ID) bool { return about[id] }) + "\n")
	}
	return b.String()
}
