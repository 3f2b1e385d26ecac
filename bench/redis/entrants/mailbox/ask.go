package mailbox

import (
	"context"
	"log/slog"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/asking"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/loop"
)

// Serve implements contest.Asker.
func (l *library) Serve(ctx context.Context, handle contest.Handler) (func(context.Context, contest.Task) error, func() error, error) {
	requests, err := loop.Over[asking.Request, asking.Result](
		broker.Config{Driver: l.records, Queue: Name, Letters: broker.DefaultLetters}, loop.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	m := asking.Mailboxes{Requests: requests, Send: requests.Outlet, ReplyTo: asking.Answers}
	m.Answers, err = broker.New(broker.Config{Driver: l.answers, Letters: broker.DefaultLetters})
	if err != nil {
		return nil, nil, err
	}
	return m.Serve(ctx, handle)
}
