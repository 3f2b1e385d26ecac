// Package nixie is the vocabulary of Nixie, a system for work that can fail.
//
// Everything that can fail is a [Message] that somebody has claimed. A claimed
// message on loan is a [Delivery]; its claim is a [Lease] with an end and a
// fencing number. A [Handler] says how the work went by the error it returns;
// package policy turns that error into one [Verb]; a store or a broker applies
// it as a [Settlement]. A message that cannot succeed becomes a [Letter] in the
// dead letter office, with one [Failure] for every attempt.
//
// This package holds nouns, states, contracts and errors, and imports the
// standard library only. Engines and stores live in the packages beside it.
package nixie
