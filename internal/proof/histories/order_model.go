package histories

import (
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/nixie-go/nixie"
)

// keyModel asks of one dedupe key whether it had at most one holder at any time.
// Its state is the holder; the zero ID stands for none.
func keyModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{nixie.ID{}} },
		Step: func(state, input, _ any) []any {
			holder, p := state.(nixie.ID), input.(*part)
			next, ok := keyStep(holder, p)
			switch {
			case p.code == nixie.CodeOutcomeUnknown && ok && next != holder:
				return []any{holder, next}
			case p.code == nixie.CodeOutcomeUnknown:
				return []any{holder}
			case ok:
				return []any{next}
			}
			return nil
		},
	}
	return m.ToModel()
}

func keyStep(holder nixie.ID, p *part) (next nixie.ID, ok bool) {
	switch {
	case p.refusedBy != nixie.ID{}:
		return holder, holder == p.refusedBy
	case p.call.Kind == Enqueue || p.call.Kind == Redrive:
		return p.message, holder.IsZero()
	}
	return nixie.ID{}, holder == p.message // it ended
}

// streamModel asks of one strict stream whether only its first message was handed
// out. Its state is the line of those that are not over, of each the ID and
// whether it is dead and blocks the others.
func streamModel(blocks bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{""} },
		Step: func(state, input, _ any) []any {
			line, p := state.(string), input.(*part)
			next, ok := streamStep(line, p, blocks)
			switch {
			case p.code == nixie.CodeOutcomeUnknown && ok && next != line:
				return []any{line, next}
			case p.code == nixie.CodeOutcomeUnknown:
				return []any{line}
			case ok:
				return []any{next}
			}
			return nil
		},
	}
	return m.ToModel()
}

const (
	waiting = "."
	dead    = "x"
)

func streamStep(line string, p *part, blocks bool) (next string, ok bool) {
	at := func(mark string) string { return string(p.message[:]) + mark }
	switch p.call.Kind {
	case Enqueue:
		for _, m := range p.call.Messages {
			if m.Stream == p.stream {
				line += string(m.ID[:]) + waiting
			}
		}
		return line, true
	case Claim:
		return line, strings.HasPrefix(line, at(waiting))
	case Redrive:
		if !blocks {
			return line + at(waiting), true
		}
		return strings.Replace(line, at(dead), at(waiting), 1), strings.Contains(line, at(dead))
	case Drop:
		return strings.Replace(line, at(dead), "", 1), !blocks || strings.Contains(line, at(dead))
	}
	after := ""
	if blocks && p.dies() {
		after = at(dead)
	}
	return strings.Replace(line, at(waiting), after, 1), strings.Contains(line, at(waiting))
}

// dies reports whether the part makes its message a dead one.
func (p *part) dies() bool {
	switch p.call.Kind {
	case Hold:
		return true
	case Settle:
		return p.call.buries()
	}
	return false
}

// ends reports whether the part ends a generation of its message, if it happened.
func (p *part) ends() bool {
	switch p.call.Kind {
	case Finish, Cancel, Hold:
		return true
	case Settle:
		return p.call.Verb != nixie.Retry && p.call.Verb != nixie.Release
	}
	return false
}
