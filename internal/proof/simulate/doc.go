// Package simulate runs workers, their crashes, pauses and wrong clocks, and the
// office in one process and one goroutine, over a store of a [storetest.Harness].
// Time stands still but for what events say, and everything is drawn from a seed,
// so that a seed is the same run each time: its trace has the same hash.
//
// A [Setup] says what does not change in a run: queues, policy, processes. An
// [Event] is one thing that happens: plain values that name what they are about, so
// that a list of them can be run again by itself, also with some left out. What
// no longer makes sense then does nothing.
//
// Every call that reaches the store is seen by a witness, below all faults, and
// written in a ledger that says what the store may answer: who holds what, what has
// ended, who has which key, what comes first in a stream. At intervals and in the
// end the store is read whole and compared. When the events are over, the faults
// are, too, and everything has to come to an end in a bounded number of steps.
//
// At a violation the events are made fewer as long as the same rule is broken, and
// seed, setup, rule and what is left are printed.
package simulate
