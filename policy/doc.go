// Package policy decides what happens to a message after a failure.
//
// [Policy.Diagnose] makes the record of a failure from an error and its [Attempt]. [Policy.Decide]
// makes the settlement of the delivery from that record. Both are pure: they read no clock and do
// no input or output. Their random numbers come from the message, so a replay gives the same
// result. A Policy never changes after [New], so any number of goroutines may share it.
//
// # The order of Decide
//
// The first rule that applies decides. [DecisionRules] lists the same rules at run time, and a test
// keeps the two equal.
//
//	success        no failure: complete
//	asked          the handler asked to discard, bury, hold or halt
//	expired        past its own expiry: give up
//	max-age        older than max_age, since its last redrive if there was one: give up
//	max-deliveries claimed max_deliveries times in this generation: give up
//	max-crashes    max_crashes holders vanished in a row, the last with it alone: give up as poison
//	released       the handler asked for a release: back into the queue
//	extend-on      an extend_on matcher holds: no failure, back into the queue
//	try            it tried an open breaker: back into the queue, and it costs nothing
//	never-dead     a never_dead matcher holds: retry
//	permanent      a dead_at_once matcher holds, or the class is permanent: give up
//	crashed        its holder vanished, which is no attempt: retry at once
//	min-age        executed max_attempts times, but time may heal it, and min_age is not over: retry
//	max-attempts   executed max_attempts times in this generation: give up
//	retry-budget   the waits of this generation would exceed retry_budget: give up
//	retry          otherwise: retry after the backoff
//
// So a hard cap beats never_dead, never_dead beats dead_at_once, and that beats the counts. A
// handler that asks for a retry passes over the rule permanent and over no other. On_exhausted
// tells what "give up" means; its default is bury. If a [Config] has cases, the values come from
// the case of the message's type and the failure's reason.
//
// # Classification
//
// Class and reason come from the first of these that knows:
//
//  1. the marks that the handler put on the error, such as [nixie.Permanent]
//  2. the class rules of the [Config], in their order
//  3. evidence with a structure, such as a deadline, an exit code or a Temporary method
//  4. reason handler, for all other failures
//
// If none of them names a class, it follows from the reason; see [Triages].
package policy
