// Package backlite lets github.com/mikestefanello/backlite take part.
//
// It opens the database as its README says. Transactions take the write lock when they begin, so
// that none must be repeated. Backlite retains failed tasks with their data as dead letters, and
// does not retain successful ones.
package backlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mikestefanello/backlite"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/sqldriver"
)

const (
	batch   = 1000
	workers = 2000
)

// Entrant is backlite.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "backlite", Kind: contest.Peer, Open: open, Module: "github.com/mikestefanello/backlite",
		Settings: "2000 workers, no backoff, failed tasks retained, 1000 tasks an Add",
	}
}

// A task's queue belongs to its type: one type for each number of attempts.
type (
	once  struct{ contest.Task }
	twice struct{ contest.Task }
)

// Config implements backlite.Task.
func (once) Config() backlite.QueueConfig { return config(1) }

// Config implements backlite.Task.
func (twice) Config() backlite.QueueConfig { return config(2) }

func config(attempts int) backlite.QueueConfig {
	return backlite.QueueConfig{
		Name: "bench", MaxAttempts: attempts,
		Retention: &backlite.Retention{OnlyFailed: true, Data: &backlite.RetainData{OnlyFailed: true}},
	}
}

type library struct {
	db       *sql.DB
	client   *backlite.Client
	attempts int
}

func open(ctx context.Context, s contest.Setup) (contest.Library, error) {
	db, err := sqldriver.Open(ctx, s.Folder, sqldriver.Options{Synchronous: s.Synchronous, Immediate: true})
	if err != nil {
		return nil, err
	}
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: workers, ReleaseAfter: time.Hour})
	if err == nil {
		err = client.Install()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &library{db: db, client: client, attempts: s.Scenario.Attempts()}, nil
}

func (l *library) task(t contest.Task) backlite.Task {
	if l.attempts == 1 {
		return once{t}
	}
	return twice{t}
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	_, err := l.client.Add(l.task(t)).Ctx(ctx).Save()
	return err
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	tasks := make([]backlite.Task, len(list))
	for i, t := range list {
		tasks[i] = l.task(t)
	}
	_, err := l.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	if l.attempts == 1 {
		l.client.Register(backlite.NewQueue(func(_ context.Context, t once) error { return handle.Handle(t.Task) }))
	} else {
		l.client.Register(backlite.NewQueue(func(_ context.Context, t twice) error { return handle.Handle(t.Task) }))
	}
	ctx, cancel := context.WithCancel(ctx)
	l.client.Start(ctx)
	return func() error {
		defer cancel()
		if !l.client.Stop(ctx) {
			return errors.New("backlite did not stop")
		}
		return nil
	}, nil
}

func (l *library) Left(ctx context.Context) (int, error) {
	return sqldriver.Count(ctx, l.db, "select count(*) from backlite_tasks")
}

func (l *library) Dead(ctx context.Context) (int, error) {
	return sqldriver.Count(ctx, l.db, "select count(*) from backlite_tasks_completed where succeeded = 0 and task is not null")
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return sqldriver.Each(ctx, l.db, "select task from backlite_tasks", func(body []byte) error {
		t, err := contest.Decode(body)
		if err != nil {
			return err
		}
		return yield(t)
	})
}

func (l *library) Close() error { return l.db.Close() }
