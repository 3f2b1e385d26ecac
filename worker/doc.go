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
//     renewing has failed for most of a lease, or when the worker stops. The
//     context behaves like one of package context; its cause is
//     [ErrLeaseLost] or [ErrStopping].
//   - Every outcome is settled, also a late one, so that the source can refuse
//     and the observer can tell it. What fails for now is repeated until the
//     lease ends.
//   - Never more than a quarter of a lease of work waits in hand, measured by
//     how fast the handler has been. What has waited for a whole lease in spite
//     of that goes back.
//   - A lease is renewed only while it makes sense: not for a handler that goes
//     on for a whole lease after its context has ended.
//   - A message whose holder vanished is judged, never run on that claim. If it
//     is to be run again it runs as the only such message of this worker; from
//     the second time on nothing runs beside it. So a message that kills its
//     process costs its neighbours one attempt, not all of theirs; with a ProgressLog it
//     costs nothing to those that had not begun.
//   - When Run returns nil nothing is in hand: what had not started was
//     released, its attempt refunded, and so was what stopped because the
//     worker did, unless its handler said what it failed of.
//   - It is not silent: deaths and trouble are in its log, see Config.Logger, and
//     a source that is closed under it ends Run with an error.
//
// The price of a message in the loop is an index into a shared batch and a
// reading of the clock; contexts live inside the batch, and one watchdog ends
// late ones. A handler pays for more only when it asks its context for more.
package worker
