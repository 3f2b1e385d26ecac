// Package store is the persistence contract: what a store of messages and
// letters has to do, and a queue in a store as a [nixie.Source].
//
// A store decides nothing. It applies settlements and resolutions that somebody
// else decided, guards every one with the expected state and lease, and keeps
// its promises in one transaction each. Package storetest holds the suite that
// every store passes.
//
// All methods are safe for concurrent use and bounded by their context. When a
// context ends while a write waits for its commit, the error is of
// [nixie.CodeOutcomeUnknown], never a silent success.
package store

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Store is everything that an embedded or shared store offers.
type Store interface {
	Queue
	DeadLetters
	Operations
	AuditLog
	Overview
	Keeper
}

// Queue takes messages in, hands them out and takes decisions back.
type Queue interface {
	nixie.Enqueuer

	// Features says what the store can do beside this. It does not change.
	Features() Features

	// Claim hands out up to want.Max due messages of the queue under leases of
	// want.Lease and returns at once, with none if none are due; want.Wait is
	// not looked at. The claim is durable against a kill of the process when
	// Claim returns.
	//
	// Each claim adds one to Deliveries and to Lease.Number, and one to
	// Attempts unless Abandoned is set. First every lease of the queue whose
	// time is over, or whose owner is known to be dead, ends: its message is
	// queued again, due now, with Crashes + 1 and Attempts − 1, and its next
	// delivery has Abandoned set; a claim of an abandoned message is there to be
	// judged, not run, and when its holder vanishes nothing is counted.
	// LastReason is set on what failed before.
	//
	// What is to be judged comes first: all of it that one call may carry, whatever
	// want.Max says, with nothing else. A message with Crashes > 0 beside that is a
	// suspect. Suspects come before others: of those with the fewest Crashes the first
	// by due rank, at most [lease.GroupSize] want.Parallel, with nothing else; that
	// [lease.AloneTwice] holds then is remembered for AbandonedAlone. To a want with
	// NoSuspects none comes, and nothing else either, unless one is leased already.
	// Otherwise messages come by their
	// [nixie.QueueSettings.DueRank], which joins the time they are due and their
	// priority, then by position; so neither waiting retries nor new messages
	// nor low priorities can be starved. All bodies of a claim have at most
	// [nixie.MaxBatchBytes] together. A paused or unknown queue hands out
	// nothing.
	//
	// Of an ordered stream at most one message is leased at any time. In a
	// strict one it is the first that has not ended, unless a dead one before
	// it blocks; while that one waits or is blocked, the marked ones (MayPass)
	// may go, the earliest due first. In a relaxed one it is the one that was
	// due first. A message that is handed out before an earlier one of its
	// stream, also before a dead one, or after a later one, has OrderGap from
	// then on.
	Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error)

	// Extend lets leases end after lease from now and saves new steps. A lease that is
	// not current gets CodeLeaseLost, a delivery that is nil CodeInvalid.
	Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error

	// Settle applies each settlement whole or not at all, many in one commit.
	// A settlement whose lease is not current, because it expired, was
	// settled or was voided, changes nothing and gets CodeLeaseLost.
	//
	// Complete, Discard and the burying verbs end the message and release its
	// dedupe key as the queue's scope says; Retry and Release queue it again
	// after Delay; Release takes the attempt back, and a Retry of what was run sets
	// Crashes to 0, as its holder survived. Failure and
	// Second, when set, are appended to the history. Steps of the delivery are saved. The burying
	// verbs make the letter of the message, or if it has one in redriving move
	// that one on: history longer, Revision + 1; Halt also pauses the queue.
	// Release with MayPass marks the message.
	Settle(ctx context.Context, settlements []nixie.Settlement) []error

	// Queues lists queues by name.
	Queues(ctx context.Context, query QueueQuery) ([]QueueInfo, error)

	// Amend changes messages that have not ended, with one audit entry each;
	// see [Change]. A message in the wrong state gets CodeConflict, an unknown
	// one CodeNotFound.
	Amend(ctx context.Context, ids []nixie.ID, change Change) []error
}

// DeadLetters is the office's view of a store.
type DeadLetters interface {
	// Letters lists letters, latest death first, and returns the cursor of
	// the next page, empty at the end. Bodies, history and artifacts are left
	// out unless page.Whole is set, or page.Bodies for bodies alone. A page may have fewer letters than asked
	// for, or none, and a cursor all the same, if many had to be looked at.
	Letters(ctx context.Context, filter nixie.Filter, page Page) ([]nixie.Letter, string, error)

	// Count counts letters that match the filter by each property of c.By, or messages
	// that still retry: the i-th list has the groups by the i-th property, largest first.
	// A property that nothing is counted by is CodeInvalid. What a store has no counters
	// for (texts, times of failure, deliveries) it asks letter by letter. Of many letters
	// that may match it then takes the newest, unless it is told to look at all, and
	// says so.
	Count(ctx context.Context, filter nixie.Filter, c Counting) ([][]Group, Coverage, error)

	// Adopt takes letters in that died elsewhere, each whole or not at all, with
	// one audit entry each: message, history with the count of what was
	// dropped, status, group, flags, counters, moments and note stay as they
	// are, a Revision or Generation of 0 becomes 1, and a zero ID gets a new
	// one. The message is dead; NotBefore and lease mean nothing and are not
	// kept, LastFailure and Artifacts follow from the history. It takes its
	// dedupe key where the queue's scope lets the dead hold theirs. It has
	// no place in an ordered stream: redriven, it is appended.
	//
	// A letter that the store has, and whose message died again with a foreign broker, is
	// moved on by [Comeback]: Generation is greater than here, or the same and the
	// letter resolved by OnConfirm. History is longer by the failures of later generations
	// than those here, counts, moments, group, flags and note are as given; message ID,
	// body, headers and origin stay.
	//
	// Whatever else has the ID or the Origin of a message that the store has is not
	// taken in again: the receipt names the letter that is there, or the
	// message that has none, and says Duplicate, and Different if its body is
	// another. An ID that belongs to something else and a held dedupe key are
	// CodeConflict; what [check.Letter] refuses is CodeInvalid or
	// CodeLimit. The i-th receipt and error answer the i-th letter. At most
	// [nixie.MaxBatchBytes] of bodies go in one call.
	Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error)

	// Resolve moves letters on, each whole or not at all, with one audit
	// entry each. The i-th error answers the i-th resolution: CodeConflict
	// when the letter is not in a status that allows the event, CodeNotFound.
	// What one call does becomes visible at once, in its order.
	Resolve(ctx context.Context, resolutions []Resolution) []error
}

// Counting says what is counted, and by what.
type Counting struct {
	By   []GroupBy
	Scan Scan

	// Described is for groups with everything; without it they have their keys and sizes
	// alone, which costs less.
	Described bool

	// Retrying counts messages instead of letters, by one of [RetryingBy]: those
	// queued or leased that have begun an attempt in this life and failed at least once.
	// Their groups have nothing but a key, a size, and how many of it are leased.
	Retrying bool
}

// Sizes are the sizes of groups by their keys.
func Sizes(groups []Group) map[string]int64 {
	sizes := make(map[string]int64, len(groups))
	for i := range groups {
		sizes[groups[i].Key] = groups[i].Count
	}
	return sizes
}

// Scan says how far a store goes to count letters.
type Scan int

const (
	ScanRecent Scan = iota // answers soon, however many letters there are
	ScanAll                // however long it takes
)

// Coverage says that an answer is about the newest of the letters that may match, and of
// how many. The zero value is about all.
type Coverage struct {
	Newest int64 `json:"newest"`
	Of     int64 `json:"of"`
}

// All reports whether nothing was left out.
func (l Coverage) All() bool { return l == Coverage{} }

// Resolution is an event applied to a letter by somebody for a reason.
//
// OnRedrive queues the message again, due now: Generation + 1, Redrives + 1,
// Attempts, Deliveries and Crashes 0; history, steps and first times stay. The
// dedupe key is taken again when its scope released it; a key that another
// message holds by now is a CodeConflict. What has been redriven
// [Resolution.MaxRedrives] times already is refused with CodeConflict.
//
// With an [Edit] it queues the message with another body and other headers, in the same
// commit. What it said when it was accepted is kept beside it, see [nixie.Letter.Original],
// and an entry of [OnAmend] has the hashes before and after.
//
// OnConfirm says that a foreign broker took the message: it is canceled here, and the
// letter is resolved. Of a letter that was not queued again before it is a redrive as
// well: Generation, Redrives and the counts change as for OnRedrive, but neither Force
// nor MaxRedrives nor a dedupe key that somebody else holds matter any more.
//
// OnNote appends the reason to the notes of the letter, whatever its status; a
// letter with [nixie.MaxNotes] takes no more (CodeLimit). OnPurge removes the
// letter for good, with message, history, attachments and dedupe key; what stays
// is its audit and a number in [QueueInfo]. Pending items of operations
// that name it are skipped. A letter that is neither resolved nor discarded is
// purged only if Statuses names its status, and one whose message is on its way
// never.
type Resolution struct {
	Letter      nixie.ID
	Event       Event    // OnRedrive, OnDiscard, OnHold, OnUnhold, OnRequalify, OnRestore, OnConfirm, OnNote or OnPurge
	Actor       string   // required
	Reason      string   // required for OnDiscard, OnRequalify, OnNote and OnPurge; at most [nixie.MaxReason] bytes
	Operation   nixie.ID // the operation it belongs to; its item is marked in the same transaction
	Force       bool     // redrive also what is not redrivable or needs review
	MaxRedrives int      // for OnRedrive; 0 is no cap
	Reviewed    bool     // for OnUnhold: a person found that it may be redriven, without force from then on

	Edit *Edit // for OnRedrive: what the message says from then on; nil leaves it

	Statuses []nixie.Status // for OnPurge: a letter in another is a CodeConflict; none means resolved or discarded

	// Skip says why the letter is left as it is, whatever its status: the item of its
	// operation is skipped, and the answer is a CodeConflict of this text.
	Skip string
}

// Reviewed is what stands for the rule of policy once a person has decided instead.
const Reviewed = "reviewed"

// NeedsReason reports whether the event is one that nobody does without a reason.
func (r *Resolution) NeedsReason() bool {
	switch r.Event {
	case OnDiscard, OnRequalify, OnNote, OnPurge:
		return true
	}
	return false
}

// Note is the note of the letter afterwards: only a discard and a hold leave one.
func (r *Resolution) Note() string {
	if r.Event == OnDiscard || r.Event == OnHold {
		return By(r.Actor, r.Reason)
	}
	return ""
}

// By is the note on what an operator did: "actor: reason", or the actor alone.
func By(actor, reason string) string {
	if reason == "" {
		return actor
	}
	return actor + ": " + reason
}

// Purges reports whether a purge that is possible is meant for letters of a status.
func (r *Resolution) Purges(status nixie.Status) bool {
	if len(r.Statuses) == 0 {
		return !status.Unresolved()
	}
	return slices.Contains(r.Statuses, status)
}

// AuditLog is the record of operator actions and of verdicts on letters. The actor of a
// verdict is lifecycle.System, and its reason the rule of a death or the note of a discard.
// What follows from an operator's action comes after it, with the same actor and reason.
type AuditLog interface {
	// Audit lists the entries that match.
	Audit(ctx context.Context, filter AuditFilter, page Page) ([]AuditEntry, string, error)
}

// AuditEntry is one link of a queue's chain. Its hash covers its own fields and
// the hash before it.
type AuditEntry struct {
	Queue     string     `json:"queue"`
	Number    int64      `json:"number"` // 1, 2, 3 … per queue
	At        time.Time  `json:"at"`
	Actor     string     `json:"actor"`
	Event     Event      `json:"event"`
	Subject   nixie.ID   `json:"subject"` // a letter or message
	Reason    string     `json:"reason"`
	Operation nixie.ID   `json:"operation"` // that it is part of; zero if of none
	Before    nixie.Hash `json:"before"`    // hash of the entry before, also when that was pruned; zero for the first
	Hash      nixie.Hash `json:"hash"`
}

// QueueQuery says what is asked about queues. The zero value asks for everything.
type QueueQuery struct {
	Names    []string // of these those that exist; nil is all
	Settings bool     // only names and settings: one look at a row for each
}

// Overview shows messages and sets what is set per queue.
type Overview interface {
	// Messages lists messages, newest first, like Letters.
	Messages(ctx context.Context, filter nixie.Filter, page Page) ([]Record, string, error)
	// Adjust changes settings of a queue without a race: edit gets what is set
	// now and changes some of it, in the transaction that writes it back and
	// adds the audit entry, creating the queue if need be. It may be called
	// more than once and must not call the store; its error ends the call.
	// Where nothing changes nothing is written. Adjust returns what is set.
	// A new dedupe scope holds for what happens from now on: keys that were
	// released stay free, keys that are held stay held until the message moves on.
	Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings, error)
	// Purge cancels up to most (at most [nixie.MaxBatch]) queued messages of a
	// queue that match the filter, never leased ones, in one transaction with
	// one audit entry that has their number, and returns it. Less than most
	// means that none is left.
	Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error)
}

// Record is a message with what went wrong so far.
type Record struct {
	nixie.Message
	History        []nixie.Failure
	HistoryDropped int
	Damage         []string // what could not be read of it, see [nixie.Letter]
}

// Keeper looks after the store itself.
type Keeper interface {
	// Prune removes what is older than the retention of its queue, in one
	// transaction: ended messages without a letter, with their history and
	// dedupe key; resolved and discarded letters with their messages; the oldest
	// entries of audits, of which an entry of [OnPrune] says so; and keys of
	// [Tx.Once], which belong to no queue, after [InboxRetention].
	// What has not ended, and letters in which somebody still has to do
	// something, are never touched. One call looks at up to p.Limit rows, or
	// entries and letters that go; it returns where to go on, empty at the end.
	Prune(ctx context.Context, p Pruning) (Pruned, error)
	// Close waits for calls in flight and gives this process's leases back to
	// be judged at once. Calls after it get CodeUnavailable.
	Close() error
}

// Report is what Check found.
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
