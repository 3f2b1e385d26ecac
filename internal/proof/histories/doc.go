// Package histories checks what several clients of one store see at once.
//
// A history is up to 300 calls of 2 to 8 clients at random: enqueue, claim,
// extend, settle with every verb, complete in a transaction, cancel, hold, retry
// now, redrive, discard, look. Callers leave in the middle of a call, stores are
// closed and opened again, leases run out, processes are killed. Of each call the
// start and the end are recorded, and at the end everything is worked off and
// looked at once more. Then the record is judged:
//
//   - Each message alone is a register with a fence: is there an order of the
//     calls, within their times, that explains all answers? Calls whose outcome
//     no client knows may have happened at any time after they began, or never. The
//     same is asked of each dedupe key, which has one holder, and of each strict
//     stream, of which the first alone may go.
//   - The queue as a whole, in Jepsen's words: of what was attempted and
//     acknowledged nothing is lost, unexpected or duplicated; what was thought
//     lost may be recovered.
//   - Effects that were written in the transaction that completed a message are
//     there exactly once, and so is all that was to follow a settlement.
//
// The harness takes any store: see [Harness]. The seed repeats the calls, not the
// moments at which they meet, so a failure may need a few runs to come again.
package histories
