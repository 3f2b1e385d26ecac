package loop

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
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

// notice makes the message of a dead letter.
func notice(d *nixie.Delivery, f *nixie.Failure, to string, now time.Time) nixie.Message {
	n := store.NewNotice(&d.Message, f, now)
	n.MessageID, n.RequestID = IDOf(d), cmp.Or(requestIDIn(JSON{}, d), requestIDOf(d))
	return n.Message(to)
}

// whole refuses what is no notice of a death, such as a letter as it is: its fields would be empty.
func (l *DeadLetter[T]) whole() error {
	for name, missing := range map[string]bool{
		"message_id": l.MessageID.IsZero(), "source_mailbox": l.SourceMailbox == "", "dead_lettered_at": l.DeadLetteredAt.IsZero(),
	} {
		if missing {
			return nixie.Errorf(nixie.CodeInvalid, "this is no notice of a death: it has no %s", name)
		}
	}
	return nil
}

// UnmarshalJSON puts a body that is no T into Raw. It refuses what is no notice of a death.
func (l *DeadLetter[T]) UnmarshalJSON(data []byte) error {
	type fields DeadLetter[T]
	whole := (*fields)(l)
	if json.Unmarshal(data, whole) == nil {
		return l.whole()
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
	return cmp.Or(err, l.whole())
}

// attemptsOf counts the attempts of a message in this generation.
func attemptsOf(d *nixie.Delivery) int { return d.Attempts + d.Crashes }

// traceOf returns the trace ID of a message, or "".
func traceOf(d *nixie.Delivery) string { return store.TraceOf(d.Header(nixie.HeaderTraceParent)) }
