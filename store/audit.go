package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// AuditLog records actions of operators and verdicts on letters. A verdict has the actor
// System; its reason is the rule of a death or the note of a discard. An event that
// follows from an operator's action comes after it, with the same actor and reason.
type AuditLog interface {
	// Audit lists the entries that match.
	Audit(ctx context.Context, filter AuditFilter, page Page) ([]AuditEntry, string, error)
}

// AuditEntry is one link in the audit chain of a queue. Its hash covers its own fields and the hash
// of the entry before.
type AuditEntry struct {
	Queue     string     `json:"queue"`
	Number    int64      `json:"number"` // 1, 2, 3 … per queue
	At        time.Time  `json:"at"`
	Actor     string     `json:"actor"`
	Event     Event      `json:"event"`
	Subject   nixie.ID   `json:"subject"` // a letter or message
	Reason    string     `json:"reason"`
	Operation nixie.ID   `json:"operation"` // zero: the event is part of no operation
	Before    nixie.Hash `json:"before"`    // hash of the entry before, also if that was pruned; zero for the first
	Hash      nixie.Hash `json:"hash"`
}

// AuditFilter chooses entries of the audit, from all queues. All fields that are set have to hold;
// the zero filter matches everything.
type AuditFilter struct {
	Queues []string  // exact
	Since  time.Time // not before
	Until  time.Time // before
	Actor  string    // exact
	People bool      // done by an operator or program, and not by a rule, whose actor is System
	Events []Event

	Subjects []nixie.ID // messages and letters of the events
	Oldest   bool       // oldest first, else newest first

	// Chain asks for the audit of one queue in the order of its chain, from the oldest entry that
	// is left. The other fields are ignored then.
	Chain string
}

// System is the actor of events without an operator: verdicts, replacements and prunes.
const System = "nixie"

// Match reports whether the filter matches an entry. It defines what an AuditFilter means.
func (f *AuditFilter) Match(e *AuditEntry) bool {
	return (len(f.Queues) == 0 || slices.Contains(f.Queues, e.Queue)) &&
		nixie.Times{After: f.Since, Before: f.Until}.Holds(e.At) &&
		(f.Actor == "" || f.Actor == e.Actor) && (!f.People || e.Actor != System) &&
		(len(f.Events) == 0 || slices.Contains(f.Events, e.Event)) &&
		(len(f.Subjects) == 0 || slices.Contains(f.Subjects, e.Subject))
}

// Sum computes the hash of the entry, given the hash of the entry before or zero for the first. A
// reader of an exported audit can check the chain with it.
//
// It is the SHA-256 of before and then of each field in the order of the struct. A field is a text
// with its length as eight bytes in front; numbers and nanoseconds since 1970 are decimal.
func (e *AuditEntry) Sum(before nixie.Hash) nixie.Hash {
	var room [512]byte
	var short [36]byte // a number, or an ID
	link := append(room[:0], before[:]...)
	link = appendField(link, e.Queue)
	link = appendField(link, strconv.AppendInt(short[:0], e.Number, 10))
	link = appendField(link, strconv.AppendInt(short[:0], e.At.UnixNano(), 10))
	link = appendField(link, e.Actor)
	link = appendField(link, e.Event)
	link = appendField(link, e.Subject.Append(short[:0]))
	link = appendField(link, e.Reason)
	link = appendField(link, e.Operation.Append(short[:0]))
	return sha256.Sum256(link)
}

func appendField[T ~string | []byte](link []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(link, uint64(len(field))), field...)
}

// Replaced returns the reason of the audit entry for a message that took the body of a newer one
// with its dedupe key. The entry is an [OnAmend] by no operator and has the hash of the old body.
func Replaced(body nixie.Hash) string {
	return "replaced by a newer one with its dedupe key, its body was sha256 " + hex.EncodeToString(body[:])
}
