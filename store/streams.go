package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Streams shows the streams of ordered queues and lets go what they hold up.
type Streams interface {
	// Streams lists streams that have messages on their way or unresolved
	// letters: blocked ones first, then those that wait longest.
	Streams(ctx context.Context, query StreamQuery, page Page) ([]Stream, string, error)

	// Unblock lets the followers of a stream go on, with one audit entry, and
	// returns how many messages or letters it changed; see [Unblocking].
	Unblock(ctx context.Context, u Unblocking) (int64, error)
}

// StreamQuery says which streams of a queue are asked for.
type StreamQuery struct {
	Queue string
	Name  string // empty is all
}

// FindStream shows one stream; CodeNotFound if nothing of it is on its way.
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

// NoStream is the error of a name that no stream of a queue has.
func NoStream(queue, name string) error {
	return nixie.Errorf(nixie.CodeNotFound, "no ordered stream %q of queue %q has messages on their way or in the office", name, queue)
}

// Stream is a stream of an ordered queue as it stands.
type Stream struct {
	Queue     string      `json:"queue"`
	Name      string      `json:"stream"`
	State     StreamState `json:"state"`
	Head      nixie.ID    `json:"head"`                // message that goes next or that holds it up
	Letter    nixie.ID    `json:"letter,omitzero"`     // of a head that is dead
	Due       time.Time   `json:"due,omitzero"`        // of a head that waits
	LeasedBy  string      `json:"leased_by,omitempty"` // of a head that is leased
	Attempts  int         `json:"attempts"`            // of the head
	Failure   string      `json:"failure,omitempty"`   // last one of the head
	Followers int64       `json:"followers"`           // messages on their way, without the head
	Passing   int64       `json:"passing"`             // those of them that may pass
	Dead      int64       `json:"dead"`                // unresolved letters, without a blocking head
}

// StreamState is how a stream stands.
type StreamState string

// The states of a stream.
const (
	StreamBlocked StreamState = "blocked" // its head is dead
	StreamWaiting StreamState = "waiting" // its head is due later
	StreamLeased  StreamState = "leased"
	StreamReady   StreamState = "ready"
	StreamIdle    StreamState = "idle" // nothing is on its way; letters that do not block are unresolved
)

// Unblocking lets a stream go on.
type Unblocking struct {
	Queue, Stream string
	Actor, Reason string // required

	// Mark keeps the head in its place and marks the followers that are there
	// now, so that they may pass it while it waits or is dead. Otherwise the
	// letters that block the stream stop doing so: redriven, they are appended.
	Mark bool
}

// Check says what is wrong with it.
func (u *Unblocking) Check() error {
	switch {
	case u.Queue == "" || u.Stream == "":
		return nixie.Errorf(nixie.CodeInvalid, "queue or stream is empty: name both")
	case u.Reason == "":
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why the stream may go on out of order")
	}
	return checkBy(u.Actor, u.Reason)
}

// Nothing is the error of a stream in which there is nothing to let go.
func (u *Unblocking) Nothing() error {
	if u.Mark {
		return nixie.Errorf(nixie.CodeConflict, "stream %q has no followers that could pass its head", u.Stream)
	}
	return nixie.Errorf(nixie.CodeConflict, "no letter blocks stream %q: only a dead head can be unblocked; a waiting one can be passed, held or retried now", u.Stream)
}

// Busy is the error of a queue whose order cannot begin or end now.
func Busy(queue string) error {
	return nixie.Errorf(nixie.CodeConflict, "queue %s has messages on their way: drain it before its order changes from or to none", queue)
}

// Note is what the audit says of it.
func (u *Unblocking) Note() string {
	if u.Mark {
		return "followers in stream " + u.Stream + " may pass: " + u.Reason
	}
	return "stream " + u.Stream + " unblocked: " + u.Reason
}
