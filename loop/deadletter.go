package loop

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// DeadLetter tells a mailbox of a message that died. The letter itself is in the dead letter
// office, with its whole history: acknowledging a DeadLetter does not touch it.
type DeadLetter[T any] struct {
	MessageID       nixie.ID  `json:"message_id"`
	Body            T         `json:"body"`
	Raw             []byte    `json:"raw,omitempty"` // the body, if it is not JSON or no T; Body is then zero
	SourceMailbox   string    `json:"source_mailbox"`
	DeliveryCount   int       `json:"delivery_count"`  // attempts, also those whose worker vanished
	LastError       string    `json:"last_error"`      // masked and cut as in the letter
	LastErrorType   string    `json:"last_error_type"` // qualified
	DeadLetteredAt  time.Time `json:"dead_lettered_at"`
	FirstReceivedAt time.Time `json:"first_received_at"`
	EnqueuedAt      time.Time `json:"enqueued_at"`
	RequestID       string    `json:"request_id,omitempty"`
	ReplyTo         string    `json:"reply_to,omitempty"`
	TraceID         string    `json:"trace_id,omitempty"`
}

// newDeadLetter describes a message that dies of a failure.
func newDeadLetter(d *nixie.Delivery, f *nixie.Failure, now time.Time) DeadLetter[json.RawMessage] {
	l := DeadLetter[json.RawMessage]{
		MessageID: IDOf(d), SourceMailbox: d.Queue, DeliveryCount: attemptsOf(d),
		LastError: f.Text, LastErrorType: f.Type, DeadLetteredAt: now.UTC(), FirstReceivedAt: d.FirstReceivedAt.UTC(),
		EnqueuedAt: d.EnqueuedAt.UTC(), RequestID: cmp.Or(requestIDIn(JSON{}, d), requestIDOf(d)),
		ReplyTo: d.Header(HeaderReplyTo), TraceID: traceOf(d),
	}
	if json.Valid(d.Body) {
		l.Body = d.Body
	} else {
		l.Raw = d.Body
	}
	return l
}

// notice makes the message of a dead letter. A body that is too large for it is left to the letter
// in the office.
func notice(d *nixie.Delivery, f *nixie.Failure, to string, now time.Time) []nixie.Message {
	out := Outlet[DeadLetter[json.RawMessage]]{name: to, codec: JSON{}}
	l := newDeadLetter(d, f, now)
	for {
		m, err := out.Message(l, nixie.WithHeader(nixie.HeaderRequestID, l.RequestID))
		if err == nil && nixie.CheckThen([]nixie.Message{m}) == nil {
			return []nixie.Message{m}
		}
		if l.Body == nil && l.Raw == nil {
			return nil // a queue with too long a name
		}
		l.Body, l.Raw = nil, nil
	}
}

// UnmarshalJSON puts a body that is no T into Raw.
func (l *DeadLetter[T]) UnmarshalJSON(data []byte) error {
	type fields DeadLetter[T]
	whole := (*fields)(l)
	if json.Unmarshal(data, whole) == nil {
		return nil
	}
	parts := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	raw := parts["body"]
	delete(parts, "body")
	rest, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	*whole = fields{}
	err = json.Unmarshal(rest, whole)
	l.Raw = raw
	return err
}

// attemptsOf counts the attempts of a message in this generation.
func attemptsOf(d *nixie.Delivery) int { return d.Attempts + d.Crashes }

// traceOf returns the trace ID of the header traceparent, or "".
func traceOf(d *nixie.Delivery) string {
	parts := strings.Split(d.Header(nixie.HeaderTraceParent), "-")
	const length = 32
	if len(parts) < 4 || len(parts[1]) != length {
		return ""
	}
	return parts[1]
}
