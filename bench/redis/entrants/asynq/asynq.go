// Package asynq lets github.com/hibiken/asynq take part. It has no call for many tasks, so a batch
// is one call after the other. By default it polls for tasks once a second, and every 5 s for
// retries that are due. Here it polls every millisecond, for retries only where there are some: so
// it is at its best.
//
// An archive has no more than 10,000 tasks and silently loses the oldest, so the dead are the
// failures that were counted.
package asynq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/nixie-go/nixie/bench/contest"
)

const (
	queue       = "default"
	kind        = "task"
	batch       = 1000
	concurrency = 10
	poll        = time.Millisecond
	page        = 1000
)

// Entrant is asynq.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "asynq", Kind: contest.Peer, Module: "github.com/hibiken/asynq", Open: open,
		Settings: fmt.Sprintf("%d handlers, polls every %s; it has no call for many tasks", concurrency, poll),
	}
}

type library struct {
	at        asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
	scenario  contest.Scenario
}

func open(_ context.Context, s contest.Setup) (contest.Library, error) {
	at := asynq.RedisClientOpt{Addr: s.URL}
	return &library{at: at, client: asynq.NewClient(at), inspector: asynq.NewInspector(at), scenario: s.Scenario}, nil
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = l.client.EnqueueContext(ctx, asynq.NewTask(kind, body), asynq.MaxRetry(l.scenario.Attempts()-1))
	return err
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	for _, t := range list {
		if err := l.Enqueue(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) Start(_ context.Context, handle contest.Handler) (func() error, error) {
	config := asynq.Config{
		Concurrency: concurrency, TaskCheckInterval: poll, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return poll },
	}
	if l.scenario == contest.FailsOnce {
		config.DelayedTaskCheckInterval = poll
	}
	server := asynq.NewServer(l.at, config)
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		t, err := contest.Decode(task.Payload())
		if err != nil {
			return err
		}
		return handle.Handle(t)
	}))
	return func() error {
		server.Shutdown()
		return nil
	}, err
}

func (l *library) Left(context.Context) (int, error) {
	q, err := l.inspector.GetQueueInfo(queue)
	if err != nil {
		return 0, err
	}
	return q.Pending + q.Active + q.Scheduled + q.Retry, nil
}

func (l *library) Dead(context.Context) (int, error) {
	q, err := l.inspector.GetQueueInfo(queue)
	switch {
	case err != nil:
		return 0, err
	case l.scenario.Attempts() > 1:
		return q.Archived, nil
	}
	return q.FailedTotal, nil
}

func (l *library) Each(_ context.Context, yield func(contest.Task) error) error {
	for n := 1; ; n++ {
		list, err := l.inspector.ListPendingTasks(queue, asynq.PageSize(page), asynq.Page(n))
		if err != nil || len(list) == 0 {
			return err
		}
		for _, task := range list {
			t, err := contest.Decode(task.Payload)
			if err != nil {
				return err
			}
			if err := yield(t); err != nil {
				return err
			}
		}
	}
}

func (l *library) Close() error { return errors.Join(l.client.Close(), l.inspector.Close()) }
