package nixie

import (
	"bytes"
	"crypto/sha256"
	"time"
)

// Message is a unit of work or an event. The fields up to ExpiresAt come from
// whoever enqueues it; the rest is kept by the store and ignored on enqueue.
type Message struct {
	ID        ID        `json:"id"`                   // chosen by the store when zero
	Queue     string    `json:"queue"`                // required; see [CheckName]
	Type      string    `json:"type,omitempty"`       // its kind; a queue may carry many
	Key       string    `json:"key,omitempty"`        // the caller's own name for it: item ID, business key
	Stream    string    `json:"stream,omitempty"`     // ordering key; empty is a stream of its own
	DedupeKey string    `json:"dedupe_key,omitempty"` // at most one holder per queue, see [DedupeScope]
	Body      []byte    `json:"-"`                    // opaque bytes
	Headers   []Header  `json:"headers,omitempty"`    // ordered; a name may occur more than once
	Priority  int       `json:"priority,omitempty"`   // −4…4, higher first
	NotBefore time.Time `json:"not_before,omitzero"`  // not handed out earlier, by the store's clock
	ExpiresAt time.Time `json:"expires_at,omitzero"`  // not handed to a handler later
	Origin    *Origin   `json:"origin,omitempty"`     // where it came from, when not from us

	Hash            Hash          `json:"hash"`                       // of Body, taken at acceptance
	State           State         `json:"state"`                      // as of the read
	Attempts        int           `json:"attempts"`                   // executions begun in this generation, without those whose holder vanished
	Deliveries      int           `json:"deliveries"`                 // claims in this generation, never refunded
	Crashes         int           `json:"crashes"`                    // holders that vanished with it in a row; 0 again once one survived it
	Generation      int           `json:"generation"`                 // lives; the first is 1, a redrive starts the next
	Redrives        int           `json:"redrives"`                   // never reset
	Steps           []string      `json:"steps,omitempty"`            // named steps done; they only grow
	MayPass         bool          `json:"may_pass,omitempty"`         // may go before those of its stream that wait or are dead
	OrderGap        bool          `json:"order_gap,omitempty"`        // was handed out before an earlier one of its stream, or after a later one
	EnqueuedAt      time.Time     `json:"enqueued_at"`                //
	FirstReceivedAt time.Time     `json:"first_received_at,omitzero"` // first claim of all lives
	LastFailure     string        `json:"last_failure,omitempty"`     // text of the newest failure, for lists
	LastReason      Reason        `json:"last_reason,omitempty"`      // reason of the newest failure
	LeaseOwner      string        `json:"lease_owner,omitempty"`      // while leased
	LeasedAt        time.Time     `json:"leased_at,omitzero"`         // while leased: the claim
	LeaseExpiresAt  time.Time     `json:"lease_expires_at,omitzero"`  // while leased
	EndedAt         time.Time     `json:"ended_at,omitzero"`          // once it has ended
	OnConflict      Conflict      `json:"-"`                          // enqueue only: what a taken DedupeKey means
	Delay           time.Duration `json:"-"`                          // enqueue only: NotBefore from the store's now
}

// Header is a name and a value that travel with a message.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Header names with a meaning to Nixie.
const (
	HeaderRequestID   = "request-id"  // stable over retries and redrives
	HeaderTraceParent = "traceparent" // W3C Trace Context
)

// Header returns the last value of the named header, or "".
func (m *Message) Header(name string) string {
	for i := len(m.Headers) - 1; i >= 0; i-- {
		if m.Headers[i].Name == name {
			return m.Headers[i].Value
		}
	}
	return ""
}

// Origin says where a message came from when it did not come from our own
// enqueue. A partition or an offset of −1 is not known, or there is none. A nil Key
// differs from an empty one.
type Origin struct {
	System    string    `json:"system"`
	Channel   string    `json:"channel,omitempty"`
	Partition int32     `json:"partition,omitempty"`
	Offset    int64     `json:"offset,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	Key       []byte    `json:"key"`
	Timestamp time.Time `json:"timestamp,omitzero"`
}

// Same reports whether both are there and say the same.
func (o *Origin) Same(other *Origin) bool {
	if o == nil || other == nil {
		return false
	}
	return o.System == other.System && o.Channel == other.Channel && o.Partition == other.Partition && o.Offset == other.Offset &&
		o.MessageID == other.MessageID && (o.Key == nil) == (other.Key == nil) && bytes.Equal(o.Key, other.Key) && o.Timestamp.Equal(other.Timestamp)
}

// Hash is a SHA-256 sum.
type Hash [sha256.Size]byte

// HashBody is the hash kept with a message and checked at every hand-over.
func HashBody(body []byte) Hash { return sha256.Sum256(body) }

// Conflict says what enqueueing a message means whose dedupe key is taken.
type Conflict int8

// What a taken dedupe key means.
const (
	ReturnExisting  Conflict = iota // the receipt names the holder; nothing is added
	FailOnConflict                  // [DuplicateError] names the holder; nothing of the batch is added
	ReplaceExisting                 // a holder that nobody has claimed takes the new body, headers and type, and the key unless that is empty; its ID and place stay; else as FailOnConflict
)

// DedupeScope says how long a dedupe key is held.
type DedupeScope string

// The scopes of a dedupe key.
const (
	DedupeActive     DedupeScope = "active"     // while queued or leased; the default
	DedupeUnresolved DedupeScope = "unresolved" // also while dead with an unresolved letter
	DedupeEver       DedupeScope = "ever"       // as long as the log row is kept
)

// Receipt is the answer to one enqueued message.
type Receipt struct {
	ID        ID   `json:"id"`                  // of the message, or of the holder of its dedupe key
	Duplicate bool `json:"duplicate,omitempty"` // nothing was added
	Different bool `json:"different,omitempty"` // the holder's body differs from the one given
}

// Option sets a field of a message on its way in.
type Option func(*Message)

// Queue sends the message to the named queue.
func Queue(name string) Option { return func(m *Message) { m.Queue = name } }

// Stream puts the message into an ordered stream of its queue.
func Stream(name string) Option { return func(m *Message) { m.Stream = name } }

// Key gives the message the caller's own name.
func Key(key string) Option { return func(m *Message) { m.Key = key } }

// DedupeKey makes the message unique in its queue for the queue's scope.
func DedupeKey(key string) Option { return func(m *Message) { m.DedupeKey = key } }

// OnConflict chooses what a taken dedupe key means; default [ReturnExisting].
func OnConflict(c Conflict) Option { return func(m *Message) { m.OnConflict = c } }

// Delay keeps the message back for d from the store's now.
func Delay(d time.Duration) Option { return func(m *Message) { m.Delay = d } }

// Priority puts the message before those of lower priority; −4…4.
func Priority(p int) Option { return func(m *Message) { m.Priority = p } }

// WithHeader adds a header.
func WithHeader(name, value string) Option {
	return func(m *Message) { m.Headers = append(m.Headers, Header{name, value}) }
}
