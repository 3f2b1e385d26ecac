package policy

import (
	"context"

	"github.com/nixie-go/nixie"
)

// ability is what the errors of a chain, together, can say of themselves. A question
// that none of them can answer is not asked: most errors are a text and no more, and
// each question is a walk through all of them.
type ability uint

const (
	canStep   ability = 1 << iota // says in which step it failed
	canExit                       // says the exit code of a command
	canLate                       // may be a timeout; all of package net and of the system can
	canPass                       // may be temporary
	canCode                       // is a [nixie.Error]
	canMark                       // is a mark of package nixie
	canBeIs                       // says itself what it is, to errors.Is …
	canBeAs                       // … and to errors.As
	canCancel                     // is [context.Canceled]

	canTell = canLate | canPass | canCode | canBeIs | canBeAs | canCancel // what evidence asks for
)

// has reports whether something of it is among the abilities.
func (a ability) has(some ability) bool { return a&some != 0 }

// abilities looks at err and all that it wraps. ended is as with every.
func abilities(err error) (all ability, ended bool) {
	ended = every(err, func(e error) { all |= abilityOf(e) })
	return all, ended
}

// abilityOf calls none of the error's methods: they are foreign code.
func abilityOf(err error) (a ability) {
	if _, ok := err.(stepped); ok {
		a |= canStep
	}
	if _, ok := err.(exited); ok {
		a |= canExit
	}
	if _, ok := err.(late); ok {
		a |= canLate
	}
	if _, ok := err.(passing); ok {
		a |= canPass
	}
	if _, ok := err.(interface{ Is(error) bool }); ok {
		a |= canBeIs
	}
	if _, ok := err.(interface{ As(any) bool }); ok {
		a |= canBeAs
	}
	switch err.(type) {
	case *nixie.Error:
		a |= canCode
	case *nixie.Outcome:
		a |= canMark
	}
	if err == context.Canceled { // every error of the chain is asked
		a |= canCancel
	}
	return a
}
