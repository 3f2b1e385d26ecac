package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Streams lists the streams of ordered queues, and unblocks them.
type Streams interface {
	// Streams lists streams with queued or leased messages or unresolved letters: blocked streams
	// first, then those that wait longest.
	Streams(ctx context.Context, query StreamQuery, page Page) ([]Stream, string, error)

	// Unblock lets the followers of a stream go on, with one audit entry, and returns the number of
	// messages or letters that it changed; see [Unblocking].
	Unblock(ctx context.Context, u Unblocking) (int64, error)
}

// StreamQuery selects streams of a queue.
type StreamQuery struct {
	Queue string
	Name  string // empty selects all
}

// FindStream returns one stream; CodeNotFound if it has no messages and no letters.
func FindStream(ctx context.Context, st Streams, queue, name string) (Stream, error) {
	if name == "" { // which would ask for all
		return Stream{}, NoStream(queue, name)
	}
	list, _, err := st.Streams(ctx, StreamQuery{queue, name}, Page{})
	if err == nil && len(list) == 0 {
		err = NoStream(queue, name)
	}
	if err != nil {
		return Stream{}, err
	}
	return list[0], nil
}

// NoStream returns the error for a name that no stream of a queue has.
func NoStream(queue, name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "no ordered stream %q of queue %q has messages on their way or in the office", name, queue)
}

// Stream shows the present state of a stream in an ordered queue.
type Stream struct {
	Queue     string      `json:"queue"`
	Name      string      `json:"stream"`
	State     StreamState `json:"state"`
	Head      nixie.ID    `json:"head"`                // message that is delivered next, or that blocks the stream
	Letter    nixie.ID    `json:"letter,omitzero"`     // of a dead head
	Due       time.Time   `json:"due,omitzero"`        // of a waiting head
	LeasedBy  string      `json:"leased_by,omitempty"` // of a leased head
	Attempts  int         `json:"attempts"`            // of the head
	Failure   string      `json:"failure,omitempty"`   // last failure of the head
	Followers int64       `json:"followers"`           // queued or leased messages, without the head
	Passing   int64       `json:"passing"`             // followers that may pass the head
	Dead      int64       `json:"dead"`                // unresolved letters, without a blocking head
}

// StreamState says whether a stream can go on.
type StreamState string

// The states of a stream.
const (
	StreamBlocked StreamState = "blocked" // its head is dead
	StreamWaiting StreamState = "waiting" // its head is due later
	StreamLeased  StreamState = "leased"
	StreamReady   StreamState = "ready"
	StreamIdle    StreamState = "idle" // no message is queued or leased; unresolved letters do not block
)

// Unblocking lets a stream go on.
type Unblocking struct {
	Queue, Stream string
	Actor, Reason string // required

	// Mark keeps the position of the head, and marks the present followers so that they may pass it
	// while it waits or is dead. Without Mark the letters stop blocking the stream: a redrive
	// appends their messages.
	Mark bool
}

// Check says what is wrong with the unblocking.
func (u *Unblocking) Check() error {
	switch {
	case u.Queue == "" || u.Stream == "":
		return nixie.Errorf(nixie.CodeInvalid, "queue or stream is empty: name both")
	case u.Reason == "":
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why the stream may go on out of order")
	}
	return checkBy(u.Actor, u.Reason)
}

// Nothing returns the error for a stream in which the unblocking changes nothing.
func (u *Unblocking) Nothing() error {
	if u.Mark {
		return nixie.Errorf(nixie.CodeConflict, "stream %q has no followers that could pass its head", u.Stream)
	}
	return nixie.Errorf(nixie.CodeConflict,
		"no letter blocks stream %q: only a dead head can be unblocked; a waiting one can be passed, held or retried now", u.Stream)
}

// Busy returns the error for a queue whose order cannot begin or end now.
func Busy(queue string) error {
	return nixie.Errorf(nixie.CodeConflict, "queue %s has messages on their way: drain it before its order changes from or to none", queue)
}

// Note returns the reason of the audit entry.
func (u *Unblocking) Note() string {
	if u.Mark {
		return "followers in stream " + u.Stream + " may pass: " + u.Reason
	}
	return "stream " + u.Stream + " unblocked: " + u.Reason
}
