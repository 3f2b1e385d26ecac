package engine

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// LastRank stands for a rank behind all messages of the queue: a driver fills it in when it writes
// the message.
const LastRank = -1

// Changes has what a call changes. The driver writes it in this order, each row once, as it is
// after the call. Letters that left a stream or returned to one are known by their InStream.
type Changes struct {
	Adjusted  *Queue     // has other settings
	Halted    []*Queue   // are paused, with their other settings as they then are
	New       []*Arrival // are taken in; they hold their dedupe keys
	Replaced  []Replacement
	Adopted   []Adopted
	Failures  []Failure
	Messages  []*Message
	Extended  []*Message // have another end of their leases, and perhaps more steps
	Renewed   []*Message // have another expiry
	Edits     []Edit
	Letters   []*Letter
	Freed     []FreedKey
	Taken     map[Key]*Message // hold their dedupe keys, after others were freed
	Notes     []Note
	Decided   []ItemChange
	Ends      []ItemEnd // after Decided: the same call may have decided the item
	Regrouped []Regrouped
	Removed   []Removal
	Documents []DocumentWrite
	Audit     []Entry
	PrunedTo  *string  // where pruning goes on; set at the end of a call that prunes and is to be resumed
	Wakes     []string // what else rings: the driver tells of messages that are due
}

// DocumentWrite replaces a document that was loaded, or removes it with nil. The driver fills in
// the new revision.
type DocumentWrite struct {
	store.DocumentKey
	*store.Document
}

// Replacement gives the message at a position what another one says, which is not taken in. It
// keeps its key if that has none.
type Replacement struct {
	Pos int64
	By  *Arrival
}

// Adopted is a letter from elsewhere that is taken in: with the history, the notes and what the
// sender said, as they were given.
type Adopted struct {
	Letter *Letter
	Given  *nixie.Letter
}

// Failure is appended to the history of a message. Its decision and its steps are filled in.
type Failure struct {
	Message *Message
	nixie.Failure
}

// FreedKey is a dedupe key that the message at a position does not hold any more.
type FreedKey struct {
	Key
	Pos int64
}

// Edit replaces body and headers of a message. The store keeps the message as it was before the
// first edit, with the actor of that.
type Edit struct {
	Message *Message
	Actor   string
	Body    []byte
}

// Note is a note on a letter.
type Note struct {
	Letter   *Letter
	By, Text string
}

// Regrouped gives the item by which a redrive moved a letter last the new group of the letter, if
// it has the one that the letter had.
type Regrouped struct {
	Letter *Letter
	Was    string // its fingerprint
}

// ItemEnd is the ending of a message, of which the item of a redrive hears if it has no outcome
// yet.
type ItemEnd struct {
	lifecycle.Ending
	Letter int64 // its position
}

// ItemChange decides a pending item.
type ItemChange struct {
	ItemKey
	Letter int64 // its position
	State  lifecycle.Item
	Group  string // fingerprint that replaces the planned one; "" leaves it
	Error  string // why the letter was not moved
}

// Removal removes a letter for good. Pending items of other operations are skipped.
type Removal struct {
	Letter    *Letter
	Operation nixie.ID
}

// Entry is an entry of the audit of a queue. The driver chains it.
type Entry struct {
	Queue int64
	store.AuditEntry
}

// call is one run of a verb in a transaction: what it loaded and what it changes.
type call struct {
	*Facts
	changes Changes
}

// touch notes that a message changed.
func (c *call) touch(m *Message) {
	if !m.changed {
		m.changed = true
		c.changes.Messages = append(c.changes.Messages, m)
	}
}

// touchLetter notes that a letter changed.
func (c *call) touchLetter(l *Letter) {
	if !l.changed {
		l.changed = true
		c.changes.Letters = append(c.changes.Letters, l)
	}
}

// holder returns the message that holds the dedupe key of another one in a queue.
func (c *call) holder(m *Message, queue *Queue) (by Holder, taken bool) {
	if m.Dedupe == "" {
		return by, false
	}
	by, held := c.Keys[Key{queue.Number, m.Dedupe}]
	return by, held && by.Pos != m.Pos
}

// take gives a message its dedupe key, which is free or its own.
func (c *call) take(m *Message) {
	if m.Dedupe == "" {
		return
	}
	own := m.key()
	if _, held := c.Keys[own]; held {
		return
	}
	if c.changes.Taken == nil {
		c.changes.Taken = map[Key]*Message{}
	}
	c.Keys[own], c.changes.Taken[own] = Holder{Pos: m.Pos, ID: m.ID}, m
}

// release frees the dedupe key of a message, if the scope says so. Ended tells that nothing about
// the message is left to do; else it died, and its letter is unresolved.
func (c *call) release(m *Message, ended bool) {
	scope := m.Queue.Settings.DedupeScope
	if scope == nixie.DedupeEver || scope == nixie.DedupeUnresolved && !ended {
		return
	}
	c.free(m)
}

// free frees the dedupe key of a message.
func (c *call) free(m *Message) {
	if m.Dedupe == "" {
		return
	}
	own := m.key()
	if by, held := c.Keys[own]; held && by.Pos == m.Pos {
		delete(c.Keys, own)
		delete(c.changes.Taken, own)
	}
	c.changes.Freed = append(c.changes.Freed, FreedKey{own, m.Pos})
}

// record adds an entry to the audit of a queue.
func (c *call) record(queue int64, e store.AuditEntry) {
	c.changes.Audit = append(c.changes.Audit, Entry{queue, e})
}
