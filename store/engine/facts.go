package engine

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Want names the facts that a call needs. The zero value wants the time alone.
type Want struct {
	Adjust string // this queue, locked so that its settings can change, and made if it does not exist
	Open   string // this queue, made if it does not exist
	Queue  string // this queue, if it exists
	Others string // the settings of all queues but this one, which stay so until the call ends

	Messages []nixie.ID // with their queues, and the letters that they have
	Queued   *Queued    // the same of messages that are found
	Into     string     // this queue, made if it does not exist: messages may go there; with the holders of their keys there
	Failures bool       // the messages may get failures: with the first and the last that they have

	// New are to be taken in: their queues, which are made if they do not exist, the holders of
	// their keys, and which of their IDs exist.
	New []nixie.Message

	Leases  []*nixie.Delivery // the messages of deliveries, as far as they may be under those leases; nil ones are left out
	Settles bool              // the leases end: with the letters that the messages have
	Dies    []bool            // which of the messages may die: only these need Failures
	Halted  []nixie.ID        // those whose queues may be paused
	Then    []nixie.Message   // follow: with their queues, if these exist, and locks of their keys as of those that are freed

	Over bool    // the messages whose leases have ended by time, but for those that the driver judges by itself
	Gone []int64 // the same of all leases of these owners

	Given []*nixie.Letter // what is here of these letters from elsewhere; their queues, which are made if they do not exist

	Pruning bool  // where pruning was; no other process prunes until the call ends
	From    int64 // the queue with the lowest number from this on

	Stream *store.Unblocking // the stream that it names, if that is in use; with mark, locked for changes of all its messages

	Documents []store.DocumentKey // also those that have expired

	Letters    []nixie.ID // with their messages, the queues of those, and the holders of their dedupe keys
	Operations []nixie.ID // with their items about the letters
	Notes      bool       // count the notes of the letters
	Headers    bool       // read the headers of the messages
	Rejoins    bool       // letters may return to the streams of their messages
	Selected   bool       // tell which letters operations are yet to move
}

// Queued asks for queued messages of a queue that match a filter, at most most of them, in the
// order of their acceptance.
type Queued struct {
	Queue  *Queue
	Filter *nixie.Filter
	Most   int
}

// Vanished is a lease whose holder did not answer.
type Vanished struct {
	*Message
	By       string // the holder, as failures name it
	Told     bool   // it was told to stop
	Progress lease.Progress
}

// Facts has what a call loaded. Its verb changes letters, messages, keys and items in memory as it
// decides, so that a later item of the call meets what an earlier one did. It names what is to be
// written in Changes.
type Facts struct {
	Now        int64                  // the time of the store
	Wall       int64                  // the time that expiries are compared with
	Due        func(wall int64) int64 // the store's time at which people see a moment
	Queues     map[string]*Queue
	Others     map[string]nixie.QueueSettings
	Messages   map[nixie.ID]*Message
	Found      []nixie.ID        // the messages of Want.Queued, in their order
	New        []Arrival         // of Want.New, one for each, with its queue
	IDs        map[nixie.ID]bool // that messages of Want.New have and that exist; not nil if they have any
	Leases     []*Message        // of Want.Leases, one for each; nil: it is under no such lease
	Over       []Vanished
	Letters    map[nixie.ID]*Letter
	Keys       map[Key]Holder
	Operations map[nixie.ID]store.Event
	Documents  map[store.DocumentKey]*store.Document
	PrunedTo   string  // the cursor that Changes.PrunedTo kept
	Next       *Queue  // of Want.From, nil if there is none
	Stream     *Stream // of Want.Stream, nil if there is none
	Items      map[ItemKey]*Item

	// Of Want.Given. Letters has those that have given IDs.
	ByLetter, ByMessage map[nixie.ID]*Known
	ByOrigin            map[string]*Known    // by [store.OriginTexts]
	Earlier             map[nixie.ID]ItemEnd // of letters that Origin.Earlier names: where they are, and their operations
}

// Letter is a letter with its message.
type Letter struct {
	*lifecycle.Letter
	Pos      int64 // of its message
	Queue    int64
	Notes    int
	Selected bool     // an operation is yet to move it
	Message  *Message // nil: the message is lost
	Damage   error    // why the letter cannot be changed
	Dies     bool     // by this call: it is new, or has another death

	changed bool
}

// Message is a message with what a call has to know about it.
type Message struct {
	*lifecycle.Message
	Pos            int64
	Queue          *Queue
	Stream, Dedupe string
	Expires        int64
	BodyAt         string // as of [lifecycle.Facts]
	Hash           nixie.Hash
	Headers        []nixie.Header
	Note           string // how the message ended
	Damage         error  // why the message cannot move
	Unread         error  // why its headers cannot be read

	Letter      *Letter            // nil before its first death
	First, Last *lifecycle.Failure // of its history, nil if that is empty
	Lived       int                // the last generation in its history, if it belongs to a letter of Want.Given

	changed bool
}

// Arrival is a message that may be taken in. It has a position if its key is held for it.
type Arrival struct {
	Queue   *Queue
	Given   *nixie.Message // what its sender says
	Hash    nixie.Hash
	ID      nixie.ID
	Pos     int64
	Due     int64
	Ordered bool
}

// Message returns the message as it is once it was taken in.
func (m *Arrival) Message() lifecycle.Message {
	fresh := lifecycle.Fresh(m.Due)
	fresh.ID = m.ID
	if m.Ordered {
		fresh.Ordered, fresh.State, fresh.Rank = true, lifecycle.Behind, m.Pos
	}
	return fresh
}

// Queue is a queue with its settings.
type Queue struct {
	Number   int64
	Name     string
	Settings *nixie.QueueSettings
	Made     bool // by this call

	Taken, Most int64 // how many messages it has taken, and may take; 0 is no limit
}

// Stream is a stream of an ordered queue.
type Stream struct {
	Number int64
	Name   string
	Queue  *Queue
	Head   nixie.ID // the message that is leased or that the others wait for; zero: none
}

// Key is a dedupe key of a queue. At most one message holds it.
type Key struct {
	Queue int64
	Key   string
}

// Known tells which letter and message a letter from elsewhere is about.
type Known struct {
	Letter, Message nixie.ID // the letter is zero if the message has none
	Hash            nixie.Hash
}

// Holder is the message that holds a dedupe key.
type Holder struct {
	Pos int64
	ID  nixie.ID

	// Of Want.New: the hash of its body and, if a message is to replace it, whether it was claimed.
	Hash              nixie.Hash
	State, Deliveries int

	of *Arrival // the message, if it is of the call
}

// ItemKey names a letter in an operation.
type ItemKey struct{ Operation, Letter nixie.ID }

// Item is the state of a letter in an operation.
type Item struct {
	State   lifecycle.Item
	Planned int64 // revision at which alone the letter may be moved; 0: any
}

func (m *Message) key() Key { return Key{m.Queue.Number, m.Dedupe} }

// ordered reports whether the message belongs to an ordered stream when it is queued.
func (m *Message) ordered() bool { return m.Stream != "" && m.Queue.Settings.Ordered() }

// room returns an error if the queue can take no more messages.
func (q *Queue) room() error {
	if q.Most == 0 || q.Taken < q.Most {
		return nil
	}
	return nixie.Errorf(nixie.CodeLimit, "queue %s has taken %d messages, the limit: use another queue", q.Name, q.Taken)
}

// damage returns why a message cannot be changed, or why its letter cannot follow.
func (m *Message) damage() error {
	if m.Damage == nil && m.Letter != nil {
		return m.Letter.Damage
	}
	return m.Damage
}
