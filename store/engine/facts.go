package engine

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Want names the facts that a call needs. The zero value wants the time alone.
type Want struct {
	Adjust string // this queue, locked so that its settings can change, and made if it does not exist
	Queue  string // this queue, if it exists
	Others string // the settings of all queues but this one, which stay so until the call ends

	Letters    []nixie.ID // with their messages, the queues of those, and the holders of their dedupe keys
	Operations []nixie.ID // with their items about the letters
	Notes      bool       // count the notes of the letters
	Headers    bool       // read the headers of the messages
	Rejoins    bool       // letters may return to the streams of their messages
	Selected   bool       // tell which letters operations are yet to move
}

// Facts has what a call loaded. Its verb changes letters, messages, keys and items in memory as it
// decides, so that a later item of the call meets what an earlier one did. It names what is to be
// written in Changes.
type Facts struct {
	Now        int64 // the time of the store
	Wall       int64 // the time that expiries are compared with
	Queues     map[string]*Queue
	Others     map[string]nixie.QueueSettings
	Letters    map[nixie.ID]*Letter
	Keys       map[Key]int64 // position of the message that holds the key
	Operations map[nixie.ID]store.Event
	Items      map[ItemKey]*Item
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

	changed bool
}

// Message is a message that has a letter.
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

	changed bool
}

// Queue is a queue with its settings.
type Queue struct {
	Number   int64
	Name     string
	Settings *nixie.QueueSettings
	Made     bool // by this call
}

// Key is a dedupe key of a queue. At most one message holds it.
type Key struct {
	Queue int64
	Key   string
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
