// Package contest compares message libraries. It has the task that all carry, the interface of a
// library, the scenarios, and a ledger. The ledger proves that no library lost, repeated or changed
// a task.
//
// One process measures one scenario of one library once, so that peak memory and the garbage
// collector's state are its own. An earlier process enqueued the messages of a drain.
package contest
