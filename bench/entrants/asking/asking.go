// Package asking plays the scenarios with requests: a main loop answers, and a worker on the
// mailbox for answers hands each to the caller that waits for it.
package asking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/worker"
)

type (
	// Request asks for its task.
	Request = loop.Request[contest.Task]
	// Result has it.
	Result = loop.Result[contest.Task]
)

// Answers is the name of the mailbox for answers.
const Answers = "answers"

const concurrency = 2

// Mailboxes are those of a scenario.
type Mailboxes struct {
	Requests *loop.Mailbox[Request, Result]
	Send     *loop.Outlet[Request] // to Requests
	Answers  nixie.Source          // nil: callers do not wait
	ReplyTo  string                // the name of Answers
}

// Serve implements contest.Asker.
func (m *Mailboxes) Serve(ctx context.Context, handle contest.Handler) (ask func(context.Context, contest.Task) error,
	stop func() error, err error,
) {
	quiet := slog.New(slog.DiscardHandler) // as the others have
	main, err := loop.NewMainLoop(loop.MainConfig[contest.Task, contest.Task]{
		Requests: m.Requests, Worker: worker.Config{Concurrency: concurrency, Prefetch: nixie.MaxBatch, Logger: quiet},
		Execute: func(_ context.Context, req Request) (contest.Task, error) {
			return req.Request, handle.Handle(req.Request)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	runs := []func(context.Context) error{main.Run}
	c := &callers{waiting: map[string]chan contest.Task{}}
	if m.Answers != nil {
		w, err := worker.New(worker.Config{Source: m.Answers, Concurrency: concurrency, Prefetch: nixie.MaxBatch, Logger: quiet,
			Handler: nixie.HandlerFunc(c.answered)})
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, w.Run)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	return func(ctx context.Context, t contest.Task) error { return m.ask(ctx, c, t) }, func() (err error) {
		cancel()
		for range runs {
			err = errors.Join(err, <-ended)
		}
		return err
	}, nil
}

// ask sends a request, and waits for its answer.
func (m *Mailboxes) ask(ctx context.Context, c *callers, t contest.Task) error {
	req := Request{Request: t, RequestID: strconv.Itoa(t.I)}
	if m.Answers == nil {
		_, err := m.Send.Send(ctx, req)
		return err
	}
	came := c.wait(req.RequestID)
	if _, err := m.Send.Send(ctx, req, loop.ReplyTo(m.ReplyTo)); err != nil {
		return err
	}
	select {
	case got := <-came:
		if got != t {
			return fmt.Errorf("the answer to request %d is that to %d", t.I, got.I)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("request %d has no answer: %w", t.I, context.Cause(ctx))
	}
}

// callers are those that wait for an answer, by the ID of the request.
type callers struct {
	mu      sync.Mutex
	waiting map[string]chan contest.Task
}

func (c *callers) wait(id string) <-chan contest.Task {
	came := make(chan contest.Task, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = came
	return came
}

// answered hands an answer to its caller, which must be there.
func (c *callers) answered(_ context.Context, d *nixie.Delivery) error {
	var r Result
	if err := json.Unmarshal(d.Body, &r); err != nil {
		return nixie.Permanent(err)
	}
	c.mu.Lock()
	came := c.waiting[r.RequestID]
	delete(c.waiting, r.RequestID)
	c.mu.Unlock()
	if came == nil {
		return nixie.Permanent(fmt.Errorf("no caller waits for the answer to %s", r.RequestID))
	}
	came <- r.Output
	return nil
}
