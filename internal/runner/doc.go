// Package runner runs a command for each item of a list, in parallel, with retries, limits and dead
// letters.
//
// [Runner.Intake] checks the whole list and enqueues the items that the job does not have yet.
// [Runner.Run] runs the command on all items that have not ended and returns when none is left. A
// job is a queue of the store. After a stop or a kill the same call continues. It also handles
// items that others enqueue. [Runner.Work] does the same for the messages of any queues, without a
// list. It returns only when [Config.Until] says so.
package runner
