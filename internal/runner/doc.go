// Package runner does the main job: a command for each item of a list, in
// parallel, with retries, limits and dead letters.
//
// [Runner.Intake] checks the whole list and enqueues what the job does not know
// yet; [Runner.Run] runs the command on everything that is not finished and
// returns when nothing is left. A job is a queue of the store: stopped in any
// way, the same call goes on where it was, and items that others enqueue are
// handled too. [Runner.Work] does the same for the messages of any queues, without
// a list and, unless told otherwise, without an end.
package runner
