package store

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// HeaderReplyTo names the mailbox for the replies to a message.
const HeaderReplyTo = "reply-to"

// Notice tells a queue of a message that died. Its JSON is the body of a message, of type
// [nixie.TypeDeadLetter], and that of loop.DeadLetter. The letter itself is in the dead letter
// office: who handles a notice does not touch it.
type Notice struct {
	MessageID       nixie.ID        `json:"message_id"`
	Body            json.RawMessage `json:"body"`          // null if it is not JSON, or too large
	Raw             []byte          `json:"raw,omitempty"` // the body, if it is not JSON and not too large
	SourceMailbox   string          `json:"source_mailbox"`
	DeliveryCount   int             `json:"delivery_count"`  // attempts, also those whose worker vanished
	LastError       string          `json:"last_error"`      // masked and cut as in the letter
	LastErrorType   string          `json:"last_error_type"` // qualified
	DeadLetteredAt  time.Time       `json:"dead_lettered_at"`
	FirstReceivedAt time.Time       `json:"first_received_at"`
	EnqueuedAt      time.Time       `json:"enqueued_at"`
	RequestID       string          `json:"request_id,omitempty"`
	ReplyTo         string          `json:"reply_to,omitempty"`
	TraceID         string          `json:"trace_id,omitempty"`

	// Generation of the message that died; 0: the letter is not in the store of the notice.
	Generation int `json:"generation,omitempty"`
}

// NewNotice describes a message that dies. last is the failure that it died of, nil if none is
// known.
func NewNotice(m *nixie.Message, last *nixie.Failure, now time.Time) Notice {
	n := Notice{
		MessageID: m.ID, Generation: m.Generation, SourceMailbox: m.Queue, DeliveryCount: m.Attempts + m.Crashes, LastError: m.LastFailure,
		DeadLetteredAt: now.UTC(), FirstReceivedAt: m.FirstReceivedAt.UTC(), EnqueuedAt: m.EnqueuedAt.UTC(),
		RequestID: m.Header(nixie.HeaderRequestID), ReplyTo: m.Header(HeaderReplyTo),
		TraceID: TraceOf(m.Header(nixie.HeaderTraceParent)),
	}
	if last != nil {
		n.LastError, n.LastErrorType = last.Text, last.Type
	}
	if json.Valid(m.Body) {
		n.Body = m.Body
	} else {
		n.Raw = m.Body
	}
	return n
}

// Message returns the message that takes the notice to a queue. A body that has no room in it is
// left to the letter.
func (n Notice) Message(to string) nixie.Message {
	m := nixie.Message{Queue: to, Type: nixie.TypeDeadLetter, Body: n.json()}
	if len(m.Body) > nixie.MaxBody {
		n.Body, n.Raw = nil, nil
		m.Body = n.json()
	}
	if n.RequestID != "" {
		m.Headers = []nixie.Header{{Name: nixie.HeaderRequestID, Value: n.RequestID}}
	}
	return m
}

func (n *Notice) json() []byte {
	data, _ := json.Marshal(n) // of texts, times and valid JSON: it cannot fail
	return data
}

// TraceOf returns the trace ID of a header traceparent, or "".
func TraceOf(header string) string {
	parts := strings.Split(header, "-")
	const length = 32
	if len(parts) < 4 || len(parts[1]) != length {
		return ""
	}
	return parts[1]
}
