// Package contest measures message libraries against each other: the task that
// all carry, what each has to offer, the scenarios, and the ledger that shows
// that nobody lost, repeated or changed anything.
//
// One process measures one scenario of one library once, so that peak memory
// and the garbage collector's state are its own. What is drained was filled in
// by a process before it.
package contest
