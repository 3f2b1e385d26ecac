package policy

import (
	"context"

	"github.com/nixie-go/nixie"
)

// ability is a set of questions that at least one error of a chain can answer. Classifying asks
// no other question: each one walks through the whole chain, and most errors answer none.
type ability uint

const (
	canStep   ability = 1 << iota // says in which step it failed
	canExit                       // says the exit code of a command
	canLate                       // may be a timeout; errors of package net and of the system can tell
	canPass                       // may be temporary
	canCode                       // is a [nixie.Error]
	canMark                       // is a mark of package nixie
	canBeIs                       // has a method for errors.Is
	canBeAs                       // has a method for errors.As
	canCancel                     // is [context.Canceled]

	canTell = canLate | canPass | canCode | canBeIs | canBeAs | canCancel // what evidence asks for
)

// has reports whether a contains at least one of some.
func (a ability) has(some ability) bool { return a&some != 0 }

// abilities collects the abilities of err and of all that it wraps. Like every, it returns false
// when the chain is too long to be walked to its end.
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
	if err == context.Canceled { // the caller passes every error of the chain
		a |= canCancel
	}
	return a
}
