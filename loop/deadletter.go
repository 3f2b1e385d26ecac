package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
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

	// Generation of the message that died; 0: the letter is not in the store of the notice.
	Generation int `json:"generation,omitempty"`

	death *death // of the letter in a store; nil: it was made by hand
}

// death tells handler and consumer which death a notice is about, and what has become of its
// letter.
type death struct {
	generation int         // 0: it is not known
	replayed   atomic.Bool // by the handler
	over       bool        // the letter has moved on since
}

// notice makes the message of a dead letter, whose letter is in the store of the notice or not.
func notice(d *nixie.Delivery, f *nixie.Failure, to string, stored bool, now time.Time) nixie.Message {
	n := store.NewNotice(&d.Message, f, now)
	n.MessageID, n.RequestID = IDOf(d), cmp.Or(requestIDIn(JSON{}, d), requestIDOf(d))
	if !stored {
		n.Generation = 0
	}
	return n.Message(to)
}

// Replay redrives the letter of this death, so that the message itself runs again in its next
// generation and answers who asked for it first. Actor and reason are in the audit. The engine
// decides with its Force and its cap of redrives, and sends the message to a broker if it has Send.
//
// A letter that has moved on since this death, or that the store refuses to redrive, is a
// [nixie.CodeConflict]. A letter that is not in the store of the engine is a
// [nixie.CodeUnavailable]: it lies with its broker, where nixie dlq redrive --from finds it. So is
// every letter for an engine that is nil.
func (l *DeadLetter[T]) Replay(ctx context.Context, engine *redrive.Engine, actor, reason string) error {
	generation := 0
	if l.death != nil {
		generation = l.death.generation
	}
	err := nixie.Errorf(nixie.CodeNotFound, "there is no engine")
	if engine != nil {
		err = engine.Replay(ctx, nixie.Filter{IDs: []nixie.ID{l.MessageID}}, generation, actor, reason)
		if nixie.CodeOf(err) == nixie.CodeNotFound { // a letter of a broker in an office has an ID of its own
			sent := []nixie.Header{{Name: HeaderMessageID, Value: l.MessageID.String()}}
			err = engine.Replay(ctx, nixie.Filter{Queues: []string{l.SourceMailbox}, Headers: sent}, 0, actor, reason)
		}
	}
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return nixie.Errorf(nixie.CodeUnavailable, "the letter of message %s is not in the store of the engine: "+
			"if it lies with a broker, run nixie dlq redrive --from there: %w", l.MessageID, err)
	case err == nil && l.death != nil:
		l.death.replayed.Store(true)
	}
	return err
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
