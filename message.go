package nixie

import (
	"bytes"
	"crypto/sha256"
	"time"
)

// Message is a unit of work or an event. The producer sets the fields of the first block. The store
// keeps the others, and ignores them on enqueue except for OnConflict and Delay.
type Message struct {
	ID        ID        `json:"id"`                   // chosen by the store when zero
	Queue     string    `json:"queue"`                // required; see [CheckName]
	Type      string    `json:"type,omitempty"`       // chooses the handler; a queue may carry many types
	Key       string    `json:"key,omitempty"`        // the producer's own name for it: item ID, business key
	Stream    string    `json:"stream,omitempty"`     // ordering key; empty is a stream of its own
	DedupeKey string    `json:"dedupe_key,omitempty"` // at most one holder per queue, see [DedupeScope]
	Body      []byte    `json:"-"`                    // opaque bytes
	Headers   []Header  `json:"headers,omitempty"`    // ordered; a name may occur more than once
	Priority  int       `json:"priority,omitempty"`   // −4…4, higher first
	NotBefore time.Time `json:"not_before,omitzero"`  // not delivered earlier, by the store's clock
	ExpiresAt time.Time `json:"expires_at,omitzero"`  // not given to a handler later
	Origin    *Origin   `json:"origin,omitempty"`     // the broker or system it came from; nil if it was enqueued here

	Hash            Hash          `json:"hash"`                       // of Body, taken at acceptance
	State           State         `json:"state"`                      // as of the read
	Attempts        int           `json:"attempts"`                   // runs begun in this generation whose holder did not vanish
	Deliveries      int           `json:"deliveries"`                 // claims in this generation, never refunded
	Crashes         int           `json:"crashes"`                    // last holders that vanished, in a row; a surviving holder resets it
	Generation      int           `json:"generation"`                 // the first is 1; a redrive starts the next
	Redrives        int           `json:"redrives"`                   // never reset
	Patience        Patience      `json:"patience,omitzero"`          // what policy counts besides
	Steps           []string      `json:"steps,omitempty"`            // named steps done; they only grow
	MayPass         bool          `json:"may_pass,omitempty"`         // may overtake messages of its stream that wait or are dead
	OrderGap        bool          `json:"order_gap,omitempty"`        // was delivered out of the order of its stream
	EnqueuedAt      time.Time     `json:"enqueued_at"`                //
	RedrivenAt      time.Time     `json:"redriven_at,omitzero"`       // begin of this generation; zero in the first
	FirstReceivedAt time.Time     `json:"first_received_at,omitzero"` // first claim of all generations
	LastFailure     string        `json:"last_failure,omitempty"`     // text of the newest failure, for lists
	LastReason      Reason        `json:"last_reason,omitempty"`      // reason of the newest failure
	LeaseOwner      string        `json:"lease_owner,omitempty"`      // while leased
	LeasedAt        time.Time     `json:"leased_at,omitzero"`         // while leased: the claim
	LeaseExpiresAt  time.Time     `json:"lease_expires_at,omitzero"`  // while leased
	EndedAt         time.Time     `json:"ended_at,omitzero"`          // once it has ended
	OnConflict      Conflict      `json:"-"`                          // enqueue only: answer to a dedupe key that is taken
	Delay           time.Duration `json:"-"`                          // enqueue only: NotBefore, counted from the store's now
}

// Header is a name and a value that travel with a message.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Names of headers that Nixie itself uses.
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

// Since returns the moment from which the age of the message counts: its last redrive, or else its
// acceptance.
func (m *Message) Since() time.Time {
	if m.RedrivenAt.IsZero() {
		return m.EnqueuedAt
	}
	return m.RedrivenAt
}

// Retrying reports whether the message is queued or leased again after a failure, and has begun an
// attempt in this generation.
func (m *Message) Retrying() bool {
	return (m.State == Queued || m.State == Leased) && m.Attempts > 0 && m.LastReason != ""
}

// Origin names the record of another system from which a message was made. A Partition or Offset of
// −1 is unknown or does not exist there. A nil Key differs from an empty one.
type Origin struct {
	System    string    `json:"system"`
	Channel   string    `json:"channel,omitempty"`
	Partition int32     `json:"partition,omitempty"`
	Offset    int64     `json:"offset,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	Key       []byte    `json:"key"`
	Timestamp time.Time `json:"timestamp,omitzero"`

	// What tells this record from another one with the same name elsewhere, or later. Empty is
	// unknown.
	Server   string `json:"server,omitempty"`    // identity of the server or cluster, which no address gives
	Database string `json:"database,omitempty"`  // of that server
	Prefix   string `json:"prefix,omitempty"`    // of the names there
	BodyHash []byte `json:"body_hash,omitempty"` // SHA-256 of the body that lies there

	// BodyAt says where the body lies, as "topic/partition/offset", while the message does not have
	// it. Such a message cannot be sent.
	BodyAt string `json:"body_at,omitempty"`

	// Earlier is the letter of an earlier death of the same job, which this office had sent back.
	// It tells nothing of where the record lies.
	Earlier ID `json:"earlier,omitzero"`
}

// Same reports whether both are set and equal.
func (o *Origin) Same(other *Origin) bool {
	if o == nil || other == nil {
		return false
	}
	return o.System == other.System && o.Channel == other.Channel && o.Partition == other.Partition && o.Offset == other.Offset &&
		o.MessageID == other.MessageID && (o.Key == nil) == (other.Key == nil) && bytes.Equal(o.Key, other.Key) &&
		o.Timestamp.Equal(other.Timestamp)
}

// Hash is a SHA-256 sum.
type Hash [sha256.Size]byte

// HashBody returns the hash that is kept with a message and compared at every delivery.
func HashBody(body []byte) Hash { return sha256.Sum256(body) }

// Conflict says what an enqueue does when another message holds the dedupe key.
type Conflict int8

// The answers to a dedupe key that is taken.
const (
	ReturnExisting Conflict = iota // the receipt names the holder; nothing is added
	FailOnConflict                 // [DuplicateError] names the holder; nothing of the call is added

	// ReplaceExisting gives a queued holder the new body, headers and type, and the new Key if
	// there is one. Its ID and its position stay. It fails like FailOnConflict once a worker has
	// claimed the holder in its present generation.
	ReplaceExisting
)

// DedupeScope says how long a message holds its dedupe key.
type DedupeScope string

// The scopes of a dedupe key.
const (
	DedupeQueued     DedupeScope = "queued"     // until the first claim; no retry, release or redrive takes it again
	DedupeActive     DedupeScope = "active"     // while queued or leased; the default
	DedupeUnresolved DedupeScope = "unresolved" // also while it is dead and its letter is unresolved
	DedupeEver       DedupeScope = "ever"       // until retention removes the message
)

// Receipt answers one enqueued message.
type Receipt struct {
	ID        ID   `json:"id"`                  // of the message, or of the holder of its dedupe key
	Duplicate bool `json:"duplicate,omitempty"` // nothing was added
	Different bool `json:"different,omitempty"` // the holder's body differs from the one given
}

// Option sets a field of a message before it is enqueued.
type Option func(*Message)

// Queue sends the message to the named queue.
func Queue(name string) Option { return func(m *Message) { m.Queue = name } }

// Stream puts the message into an ordered stream of its queue.
func Stream(name string) Option { return func(m *Message) { m.Stream = name } }

// Key gives the message the producer's own name.
func Key(key string) Option { return func(m *Message) { m.Key = key } }

// DedupeKey makes the message unique in its queue, for the time that the queue's [DedupeScope]
// says.
func DedupeKey(key string) Option { return func(m *Message) { m.DedupeKey = key } }

// OnConflict chooses the answer to a dedupe key that is taken. The default is [ReturnExisting].
func OnConflict(c Conflict) Option { return func(m *Message) { m.OnConflict = c } }

// Delay holds the message back for d after the store accepts it.
func Delay(d time.Duration) Option { return func(m *Message) { m.Delay = d } }

// At holds the message back until t, by the store's clock. See [Message].NotBefore.
func At(t time.Time) Option { return func(m *Message) { m.NotBefore = t } }

// ExpiresAt keeps the message from handlers after t: it becomes a letter with the cause expired.
func ExpiresAt(t time.Time) Option { return func(m *Message) { m.ExpiresAt = t } }

// Priority puts the message before messages of lower priority; −4…4.
func Priority(p int) Option { return func(m *Message) { m.Priority = p } }

// WithHeader adds a header.
func WithHeader(name, value string) Option {
	return func(m *Message) { m.Headers = append(m.Headers, Header{name, value}) }
}
