// Package worker is the loop: receive, handle, decide, settle, extend, drain.
//
// A [Worker] takes deliveries from one source, runs a handler on each in a
// fixed number of goroutines, asks package policy what becomes of it, and
// settles many in one call. A [Desk] does the deciding and settling without the
// loop.
//
// # What the worker promises
//
//   - A handler starts only under a lease that is valid, and its context ends
//     before that lease can end: at a deadline, when the lease is lost, when
//     renewing has failed for most of a lease, or when the worker stops.
//   - Never more than a quarter of a lease of work waits in hand, measured by
//     how fast the handler has been.
//   - A message whose holder vanished is judged, never run on that claim. If it
//     is to be run again it runs as the only such message of this worker; from
//     the second time on nothing runs beside it. So a message that kills its
//     process costs its neighbours one attempt, not all of theirs.
//   - When Run returns nothing is in hand: what had not started was released,
//     its attempt refunded.
//
// The price of a message in the loop is an index into a shared batch and two
// readings of the clock; contexts live inside the batch, and one watchdog ends
// late ones.
package worker
