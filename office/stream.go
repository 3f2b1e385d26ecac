package office

import (
	"context"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// StreamView shows a stream of an ordered queue. Stream list prints it.
type StreamView struct {
	Queue     string            `json:"queue"`
	Stream    string            `json:"stream"`
	State     store.StreamState `json:"state"`
	Head      string            `json:"head"`   // the message that is next or that the others wait for
	Letter    string            `json:"letter"` // of a dead head
	Due       Timestamp         `json:"due"`    // of a head that waits
	LeasedBy  string            `json:"leased_by"`
	Attempts  int               `json:"attempts"` // of the head
	Failure   string            `json:"failure"`  // last one of the head
	Followers int64             `json:"followers"`
	Passing   int64             `json:"passing"` // part of Followers that may pass the head
	Dead      int64             `json:"dead"`    // other unresolved letters of the stream
}

// ViewStream makes the view of a stream.
func ViewStream(s *store.Stream) StreamView {
	v := StreamView{
		Queue: s.Queue, Stream: s.Name, State: s.State, Due: Timestamp{s.Due}, LeasedBy: s.LeasedBy, Attempts: s.Attempts,
		Failure: s.Failure, Followers: s.Followers, Passing: s.Passing, Dead: s.Dead,
	}
	if !s.Head.IsZero() {
		v.Head = s.Head.String()
	}
	if !s.Letter.IsZero() {
		v.Letter = s.Letter.String()
	}
	return v
}

// Streams lists the streams of a queue: blocked ones first, then those that have waited longest.
func (o *Office) Streams(ctx context.Context, queue string, page store.Page) ([]store.Stream, string, error) {
	if _, err := o.QueueSettings(ctx, queue); err != nil {
		return nil, "", err
	}
	streams := o.store.Features().Streams
	if streams == nil {
		return nil, "", nil // its queues have no order
	}
	return streams.Streams(ctx, store.StreamQuery{Queue: queue}, page)
}

// streams returns the store's feature of streams, or an error.
func (o *Office) streams() (store.Streams, error) {
	streams := o.store.Features().Streams
	if streams == nil {
		return nil, nixie.Errorf(nixie.CodeUnavailable, "queues of this store have no order, and so no streams")
	}
	return streams, nil
}

// AllStreams yields all streams of a queue.
func (o *Office) AllStreams(ctx context.Context, queue string) iter.Seq2[store.Stream, error] {
	return all(false, func(p store.Page) ([]store.Stream, string, error) { return o.Streams(ctx, queue, p) })
}

// Stream shows one stream.
func (o *Office) Stream(ctx context.Context, queue, name string) (store.Stream, error) {
	if _, err := o.QueueSettings(ctx, queue); err != nil {
		return store.Stream{}, err
	}
	streams, err := o.streams()
	if err != nil {
		return store.Stream{}, err
	}
	return store.FindStream(ctx, streams, queue, name)
}

// Followers lists up to limit unfinished messages of a stream, newest first.
func (o *Office) Followers(ctx context.Context, queue, name string, limit int) ([]store.Record, error) {
	f := nixie.Filter{Queues: []string{queue}, Streams: []string{name}, States: unfinishedStates()}
	list, _, err := o.store.Messages(ctx, f, store.Page{Limit: limit})
	return list, err
}

// Pass lets the present followers of a stream pass its head while the head waits or is dead. Later
// followers wait. It returns the number of messages marked.
func (o *Office) Pass(ctx context.Context, queue, stream, reason string) (int64, error) {
	return o.unblock(ctx, store.Unblocking{Queue: queue, Stream: stream, Actor: o.actor, Reason: reason, Mark: true})
}

// Unblock lets a stream go on without its dead head, for good: a redrive puts that message last. It
// returns the number of letters that blocked.
func (o *Office) Unblock(ctx context.Context, queue, stream, reason string) (int64, error) {
	return o.unblock(ctx, store.Unblocking{Queue: queue, Stream: stream, Actor: o.actor, Reason: reason})
}

func (o *Office) unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	streams, err := o.streams()
	if err != nil {
		return 0, err
	}
	return streams.Unblock(ctx, u)
}
