// Package store, for stores and drivers, and for programs that give a store to a worker, is the
// contract of stores, which keep messages and letters. It also makes a queue in a store a
// [nixie.Source].
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/memory"
//	)
//
//	func main() {
//		ctx := context.Background()
//		st := memory.New(memory.Options{})
//		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "mails", Key: "to Ada"}); err != nil {
//			log.Fatal(err)
//		}
//		source := store.NewSource(st, "mails") // as a rule for a worker, which does all that follows
//		deliveries, err := source.Receive(ctx, nixie.Want{Max: 10})
//		if err != nil {
//			log.Fatal(err)
//		}
//		var settlements []nixie.Settlement
//		for _, d := range deliveries {
//			fmt.Println("sending", d.Key)
//			settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
//		}
//		if err := errors.Join(source.Settle(ctx, settlements)...); err != nil {
//			log.Fatal(err) // such as a lease that ended
//		}
//		messages, _, err := st.Messages(ctx, nixie.Filter{}, store.Page{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(messages[0].Key, messages[0].State)
//	}
//
// A store decides nothing. Policy and operators decide; the store applies each settlement or
// resolution in one transaction, and refuses it when state or lease are not the expected ones.
// Every store passes the suite of package storetest.
//
// All methods are safe for concurrent use and bounded by their context. When a context ends while
// a write waits for its commit, the error has [nixie.CodeOutcomeUnknown], never a silent success.
package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Store is the whole contract.
type Store interface {
	Queue
	DeadLetters
	Operations
	AuditLog
	Overview
	Keeper
}

// Queue accepts messages, hands them out and takes settlements.
type Queue interface {
	nixie.Enqueuer

	// Features returns the optional abilities of the store. They do not change.
	Features() Features

	// Claim leases up to want.Max due messages of the queue and returns at once, with none if none
	// is due. It ignores want.Wait. When it returns, a kill of the process cannot undo the claim.
	//
	// Claim first ends the leases of the queue whose time is over or whose owner is known to be
	// dead. Their messages are abandoned: queued again and due now, with one more in Crashes and
	// one less in Attempts. The next delivery of an abandoned message has Abandoned set. It is
	// there to be judged: its claim counts no attempt, and a vanished holder of it counts no crash.
	//
	// Each claim adds one to Deliveries and to Lease.Number, and one to Attempts unless the
	// message is abandoned. LastReason is set on messages that failed before.
	//
	// A claim returns the first kind of this list that the queue has:
	//
	//	1. abandoned messages: all that one call can carry, also beyond want.Max
	//	2. suspects, which are other messages with Crashes > 0: those with the fewest Crashes, by
	//	   due rank, at most want.Max and [lease.GroupSize]. The store keeps for AbandonedAlone
	//	   whether [lease.AloneTwice] holds.
	//	3. other messages by [nixie.QueueSettings.DueRank], then by position. So neither retries
	//	   nor new messages nor low priorities starve.
	//
	// A claim with want.NoSuspects skips suspects; while suspects are due and none is leased, it
	// returns nothing. All bodies of a claim together have at most [nixie.MaxBatchBytes]. A paused
	// or unknown queue hands out nothing.
	//
	// At most one message of an ordered stream is leased at any time:
	//
	//	strict   the first that has not ended, unless a dead message before it blocks; while the
	//	         first waits or is blocked, the messages with MayPass, earliest due first
	//	relaxed  the message that was due first
	//
	// A message that is delivered out of the order of its stream has OrderGap from then on.
	Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error)

	// Extend makes leases end after lease from now, and saves new steps. A lease that is not
	// current gets CodeLeaseLost, a nil delivery CodeInvalid.
	Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error

	// Settle applies each settlement whole or not at all, many in one commit. A settlement whose
	// lease has expired, is settled or was voided changes nothing and gets CodeLeaseLost.
	//
	//	Complete, Discard   end the message, and release its dedupe key as the queue's scope says
	//	Bury, Hold, Halt    also make the letter of the message; a letter in redriving moves on
	//	                    instead, with a longer history and Revision + 1. Halt pauses the queue.
	//	Retry               queues the message again after Delay; a message that ran has Crashes 0
	//	Release             queues it again after Delay and refunds the attempt; MayPass marks it
	//
	// Failure and Second, if they are set, are appended to the history. The steps of the delivery
	// are saved. The messages of Then are enqueued after the settlement, in its transaction, and so
	// may take the dedupe key that it frees; perhaps also one that a later settlement of the call
	// frees. If one of their queues is closed, the settlement is refused with CodeConflict. All
	// bodies of a call together have at most [nixie.MaxBatchBytes].
	Settle(ctx context.Context, settlements []nixie.Settlement) []error

	// Queues lists queues by name.
	Queues(ctx context.Context, query QueueQuery) ([]QueueInfo, error)

	// Amend changes messages that have not ended, with one audit entry each; see [Change]. A
	// message in the wrong state gets CodeConflict, an unknown one CodeNotFound.
	Amend(ctx context.Context, ids []nixie.ID, change Change) []error
}

// DeadLetters keeps letters.
type DeadLetters interface {
	// Letters lists letters, latest death first, and returns the cursor of the next page, empty at
	// the end. Letters have bodies, history and artifacts only with page.Whole, and bodies with
	// page.Bodies. A store that has to scan many letters may end a page early: it then has fewer
	// letters than asked for, or none, and still a cursor.
	Letters(ctx context.Context, filter nixie.Filter, page Page) ([]nixie.Letter, string, error)

	// Count counts the letters that match the filter, or messages that still retry, by each
	// property of c.By. The i-th list has the groups by the i-th property, largest first. A
	// property that cannot be counted by gets CodeInvalid.
	//
	// For properties without counters (texts, times of failure, deliveries) the store scans
	// letters. It scans the newest of many letters only, unless c.Scan asks for all, and says so in
	// Coverage.
	Count(ctx context.Context, filter nixie.Filter, c Counting) ([][]Group, Coverage, error)

	// Adopt takes in letters of messages that died elsewhere, each whole or not at all, with one
	// audit entry each.
	//
	//	as given        message, history and its dropped count, status, group, flags, counters,
	//	                moments, note
	//	becomes 1       a Revision or Generation of 0
	//	made by store   an ID for the zero ID; LastFailure and Artifacts, from the history
	//	not kept        NotBefore, lease, position in an ordered stream: a redrive appends it
	//	dedupe key      held if the queue's scope lets dead messages hold theirs
	//
	// A letter of the store whose message died again with a foreign broker moves on by [Comeback].
	// This is so if the given generation is greater than the store's, or if it is the same and the
	// letter was resolved by OnConfirm. The failures of later generations are appended to the
	// history; counts, moments, group, flags and note are as given; message ID, body, headers and
	// origin stay.
	//
	// Any other letter with the ID or the Origin of a message of the store is a duplicate. Its
	// receipt names the letter of the store, or the message if it has no letter, with Duplicate
	// set, and Different if the bodies differ. An ID of something else and a dedupe key that is
	// held get CodeConflict. A letter that [check.Letter] refuses gets CodeInvalid or CodeLimit.
	// The i-th receipt and error answer the i-th letter. All bodies of a call together have at most
	// [nixie.MaxBatchBytes].
	Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error)

	// Resolve applies events to letters, each whole or not at all, with one audit entry each. The
	// i-th error answers the i-th resolution: CodeConflict if the status of the letter does not
	// allow the event, or CodeNotFound. The changes of one call become visible at once, in its
	// order.
	Resolve(ctx context.Context, resolutions []Resolution) []error
}

// QueueQuery selects queues and their details. The zero value asks for everything.
type QueueQuery struct {
	Names    []string // queues that do not exist are left out; nil selects all
	Settings bool     // return names and settings only, which costs one row per queue
	Brief    bool     // of the numbers only messages by state, OldestAt and BlockedAt are needed
}

// Overview lists messages, and changes queues.
type Overview interface {
	// Messages lists messages, newest first, like Letters. See [Page] for Newest.
	Messages(ctx context.Context, filter nixie.Filter, page Page) ([]Record, string, error)
	// Adjust changes settings of a queue and returns them. It creates the queue if there is none.
	// In one transaction it reads the settings, calls edit, writes them back and adds an audit
	// entry; without a change it writes nothing. The store may call edit more than once. Edit must
	// not call the store, and its error ends the call.
	//
	// A new dedupe scope applies to later events: keys that were released stay free, and keys that
	// are held stay held until their message moves on.
	Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings, error)
	// Purge cancels up to most queued messages of a queue that match the filter, at most
	// [nixie.MaxBatch], never leased ones. It returns their number, which is also in the audit
	// entry. Less than most means that none is left.
	Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error)
}

// Record is a message with its failures.
type Record struct {
	nixie.Message
	History        []nixie.Failure
	HistoryDropped int
	Damage         []string // parts that could not be read, see [nixie.Letter]
}

// Keeper maintains the store itself.
type Keeper interface {
	// Prune removes data that is older than its retention, in one transaction:
	//
	//	messages that ended without a letter, with their history and dedupe key
	//	resolved and discarded letters, with their messages
	//	the oldest entries of audits; an entry of [OnPrune] records it
	//	keys of [Tx.Once], which belong to no queue, after [InboxRetention]
	//
	// It never removes messages that have not ended and letters that are unresolved. One call looks
	// at up to p.Limit rows, or entries and letters to remove. Pruned.Next continues, and is empty
	// at the end.
	Prune(ctx context.Context, p Pruning) (Pruned, error)
	// Close waits for calls in flight, and ends the leases of this process so that their messages
	// can be judged at once. Later calls get CodeUnavailable.
	Close() error
}

// Report lists the invariants that Check found broken.
type Report struct {
	Checked    int64       `json:"checked"` // rows looked at
	Violations []Violation `json:"violations"`
}

// Violation is one broken invariant.
type Violation struct {
	Rule    string `json:"rule"`    // short name, stable
	Subject string `json:"subject"` // ID of the message, letter, queue …
	Text    string `json:"text"`
}
