package histories

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// Kind says what a client does.
type Kind string

// The kinds. Those up to LookAll are calls.
const (
	Enqueue   Kind = "enqueue"
	Claim     Kind = "claim"
	Extend    Kind = "extend"
	Settle    Kind = "settle"
	Finish    Kind = "finish" // complete in a transaction, together with an effect
	Cancel    Kind = "cancel"
	Hold      Kind = "hold"
	RetryNow  Kind = "retry-now"
	Redrive   Kind = "redrive"
	Drop      Kind = "discard"   // of a letter
	Resume    Kind = "resume"    // of a queue that was halted
	Configure Kind = "configure" // a queue: its order
	Look      Kind = "look"
	LookAll   Kind = "look at all"
	gone      Kind = "gone" // the process of an owner has ended
)

// Call is one thing that a client asks of a store, as data: it may be done by
// another process.
type Call struct {
	Kind     Kind
	Queue    string
	Messages []Sent         // of Enqueue
	Max      int            // of Claim
	Lease    time.Duration  // of Claim and Extend
	Loans    []Loan         // of Extend, Settle and Finish
	Verb     nixie.Verb     // of Settle
	Delay    time.Duration  // of Settle
	Message  nixie.ID       // of what is about one message
	Order    nixie.Order    // of Configure
	Head     nixie.DeadHead // of Configure
	Effect   int64          // of Finish: number of the effect
	Undo     bool           // of Finish: the transaction is rolled back
	Follows  int64          // of Settle and Finish: number of what follows the first loan, the next has the next; 0 is nothing
	Patience time.Duration  // the caller leaves then; 0 is never
}

// buries reports whether the verb of a Settle makes letters.
func (c *Call) buries() bool {
	return c.Verb == nixie.Bury || c.Verb == nixie.Hold || c.Verb == nixie.Halt
}

// follower is the key of the n-th message that follows the settlement of the i-th loan.
func (c *Call) follower(i, n int) string { return fmt.Sprintf("%d/%d", c.Follows+int64(i), n) }

// Sent is a message on its way in.
type Sent struct {
	ID     nixie.ID
	Stream string
	Key    string // dedupe key
	Delay  time.Duration
	Refuse bool // a taken key is an error
}

// Loan is a delivery as data, with the dedupe key, which settlements need.
type Loan struct {
	ID                                                  nixie.ID
	Queue, Stream, Key                                  string
	Attempts, Deliveries, Crashes, Generation, Redrives int
	Number                                              int64
	Owner                                               string
	Until                                               time.Time
	Abandoned                                           bool
	AbandonedBy                                         string
	Pos, Batch, Member                                  int64 // where the store filed it; 0 lets it look
}

// Answer holds what a call led to.
type Answer struct {
	Code     nixie.Code // of the call, when it has one answer
	Text     string
	Receipts []nixie.Receipt
	Holder   nixie.ID // of the dedupe key that refused an enqueue
	Loans    []Loan
	Parts    []nixie.Code // of Extend and Settle, one for each loan
	Found    []Found      // of Look and LookAll
	Followed []string     // of LookAll: keys of the messages that followed settlements
}

// Found is a message as it was seen.
type Found struct {
	ID                                                  nixie.ID
	State                                               nixie.State
	Attempts, Deliveries, Crashes, Generation, Redrives int
	Owner                                               string
}

// part is the code of the i-th part of a call.
func (a *Answer) part(i int) nixie.Code {
	if i < len(a.Parts) {
		return a.Parts[i]
	}
	return a.Code
}

// Effect is a row of the ledger: something that was done about a message in the
// transaction that completed it.
type Effect struct {
	Number     int64
	Message    nixie.ID
	Generation int
}
