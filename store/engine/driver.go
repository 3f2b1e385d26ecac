// Package engine has each verb of a store once, over a driver that keeps facts in a database.
//
// A verb loads facts, lets package lifecycle decide, and writes the changes:
//
//	Resolve → Driver.Update → Tx.Load → lifecycle.Refuse, Letter.Resolve → Tx.Write
//
// The engine knows the order of decisions, what each refusal says, what the audit records and which
// dedupe keys are taken or free. A driver knows where facts lie, in which order their locks are
// taken, and what a change costs. Heads of streams, the chains of audits, counters and wakes belong
// to the driver, which derives them from the changes.
//
// The driver is a store of a database: package sqlite or postgres. Package memory stays off the
// engine: the model compares all stores with it, so it is the second opinion on each verb.
package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Driver runs transactions. It decides nothing about messages and letters.
type Driver interface {
	// Update runs f in one write transaction, which is durable when Update returns nil. An error
	// of f undoes all of it. f may run again: after a race, or because the call of another caller
	// failed that shared the transaction. So f resets its results first.
	Update(ctx context.Context, how How, f func(Tx) error) error

	// EnqueuePlain takes messages in about which nothing has to be decided, in a transaction of its
	// own; nil: it took none.
	EnqueuePlain(ctx context.Context, messages []nixie.Message) ([]nixie.Receipt, error)

	// CompletePlain completes messages that are settled alone and about which nothing has to be
	// read, in a transaction of its own, and reports which; nil: none.
	CompletePlain(ctx context.Context, settlements []nixie.Settlement) (done []bool, err error)

	// Operations lists operations with their counts, as [store.Operations] has it.
	store.Operations

	// Documents lists up to most documents that have not expired, as [store.Documents] has it:
	// those with keys behind one, or the earliest due first.
	Documents(ctx context.Context, query store.DocumentQuery, after string, most int) ([]store.Document, error)
}

// How tells a driver what to expect of a call.
type How struct {
	Letters int  // how many letters it may move
	Bytes   int  // of bodies and values that it may add
	Ends    bool // it ends leases: no want of room refuses it
	Renews  bool // it renews leases: it waits for no handler
	Reads   bool // it writes nothing

	Claims string // the queue from which it claims at its end: the caller has to know what it holds
}

// Tx is one call inside a write transaction. A Load sees what an earlier Write of the call wrote.
type Tx interface {
	// Load locks what the call may change, in the one order that all calls of the driver keep, and
	// reads it then. If it read something that it did not lock, that is a race, and its error makes
	// the driver run the call again. What is not there is left out of the facts.
	Load(*Want) (*Facts, error)

	// Write writes changes of facts that were loaded. Any error undoes the call, so refusals come
	// before.
	Write(*Changes) error

	// Complete is [Driver.CompletePlain] inside the call.
	Complete(settlements []nixie.Settlement) (done []bool, err error)

	// Select keeps an operation and makes each letter that matches the filter a pending item, at
	// most most of them, in the order of [store.Operations.Plan]. It returns their number. The
	// letters may be millions, so they do not pass through the facts.
	Select(op *store.Operation, filter *nixie.Filter, most int) (int64, error)

	// SelectAgain makes items of a redrive pending again, as [store.Operations.Plan] has it.
	SelectAgain(operation nixie.ID) error

	// Remember keeps a key of a scope with the present time, and reports whether it is new. Of two
	// calls at the same time, the second waits for the first.
	Remember(scope, key string) (first bool, err error)

	// Forget removes up to most of the keys that came at a moment or before, and returns how many.
	Forget(until int64, most int) (int, error)

	// Remove removes a part of what has outlived its retention, or counts it. A driver that takes
	// locks in an order may only note what is to go, and remove it in Write.
	Remove(Part) (Removed, error)

	// After runs f once the transaction is durable. A driver that does not learn the end of a
	// caller's transaction runs it once the call has succeeded.
	After(f func())

	// Append returns the position of a new message behind all of its queue, 0 if Write gives it.
	Append(*Queue) int64

	// NewID makes the ID of a new message, or of its letter, at a position.
	NewID(pos int64) nixie.ID

	// Sent reads what the senders of messages said: bodies, headers and when they were enqueued.
	Sent([]*Message) ([]nixie.Message, error)

	// LetGo lets the followers of a stream that was loaded go on: its letters block it no more or,
	// with mark, the messages that are queued behind its head may pass it. It returns how many
	// changed.
	LetGo(s *Stream, mark bool) (int64, error)

	// Reorder applies new settings to the streams of a queue that was loaded to be adjusted. It
	// refuses a change between an order and none while messages have not ended.
	Reorder(q *Queue, to *nixie.QueueSettings) error
}

// Engine has the verbs of a store.
type Engine struct {
	driver Driver
	ids    *store.IDs
}

// New returns the verbs over a driver. IDs of what a verb makes come from ids.
func New(driver Driver, ids *store.IDs) *Engine { return &Engine{driver, ids} }

func all(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}
