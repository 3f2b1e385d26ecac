package ours

import (
	"context"
	"log/slog"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/asking"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
)

// Serve implements contest.Asker. Callers use the store of the producers.
func (l *library) Serve(ctx context.Context, handle contest.Handler) (func(context.Context, contest.Task) error, func() error, error) {
	requests, err := loop.In[asking.Request, asking.Result](l.store, queue, loop.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	send, err := loop.NewOutlet[asking.Request](l.producer, queue, nil)
	if err != nil {
		return nil, nil, err
	}
	m := asking.Mailboxes{Requests: requests, Send: send, ReplyTo: asking.Answers}
	if l.setup.Scenario != contest.Sends {
		m.Answers = store.NewSource(l.producer, asking.Answers)
	}
	return m.Serve(ctx, handle)
}

// unfinished counts requests and answers.
func (l *library) unfinished(ctx context.Context) (n int, err error) {
	queues, err := l.store.Queues(ctx, store.QueueQuery{})
	for i := range queues {
		n += int(queues[i].Unfinished() + queues[i].Dead)
	}
	return n, err
}
