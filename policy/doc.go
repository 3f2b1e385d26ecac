// Package policy turns what went wrong into one verdict.
//
// [Policy.Diagnose] makes the record of a failure out of an error and the facts
// around it; [Policy.Decide] turns that record into the settlement of the
// delivery. Both are pure: they ask no clock, do no input or output, and throw
// no dice that could not be thrown again with the same result. A Policy never
// changes after [New], so it may be shared by any number of goroutines.
//
// # The order of Decide
//
// The first rule that applies decides. [DecisionRules] lists the same rules for people
// at run time; a test keeps the two equal.
//
//	success        no failure: complete
//	asked          the handler asked to discard, bury, hold or halt
//	expired        past its own expiry: give up
//	max-age        older than max_age: give up
//	max-deliveries claimed max_deliveries times in this life: give up
//	max-crashes    max_crashes holders vanished in a row, the last with it alone: give up as poison
//	released       the handler asked for a release: back into the queue
//	extend-on      an extend_on matcher holds: no failure, back into the queue
//	never-dead     a never_dead matcher holds: retry
//	permanent      a dead_at_once matcher holds, or the class is permanent: give up
//	crashed        its holder vanished, which is no attempt: retry at once
//	max-attempts   executed max_attempts times in this life: give up
//	retry-budget   the waits of this life would exceed retry_budget: give up
//	retry          otherwise: retry after the backoff
//
// So a hard cap beats never_dead, never_dead beats dead_at_once, and that beats
// the counts. A handler that asks for a retry passes over the rule permanent,
// over no other. What "give up" means is on_exhausted: bury, unless said
// otherwise. Which values apply is said by the case of the message's type and the
// failure's reason, where a [Config] has cases.
//
// # Classification
//
// Class and reason come from the first of these that knows: the marks that the
// handler put on the error ([nixie.Permanent] and its like); the rules of the
// [Config] in their order; evidence with a structure, such as a deadline, an
// exit code or a Temporary method; and at last reason handler. A class that
// nobody named follows from the reason, see [Triages].
package policy
