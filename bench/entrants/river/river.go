// Package river lets github.com/riverqueue/river with its driver riversqlite take
// part.
//
// The pool has one connection, as its documentation advises. The working client inserts single
// jobs, so that it notifies itself. A client that only inserts takes many at a time. InsertManyFast
// of a client with workers panics on SQLite at this version, that of the newest driver for SQLite.
package river

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/sqldriver"
)

const (
	batch   = 1000
	workers = 1000
	cool    = time.Millisecond // the least that can be set
	poll    = 20 * time.Millisecond
)

// Entrant is River on SQLite.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "river", Kind: contest.Peer, Open: open, Module: "github.com/riverqueue/river",
		Settings: "1000 workers, fetch cooldown 1 ms, retry at once, 1000 jobs an InsertManyFast",
	}
}

type arguments struct{ contest.Task }

// Kind implements river.JobArgs.
func (arguments) Kind() string { return "task" }

type worker struct {
	river.WorkerDefaults[arguments]
	library *library
}

// Work implements river.Worker.
func (w *worker) Work(_ context.Context, job *river.Job[arguments]) error {
	return w.library.handler.Handle(job.Args.Task)
}

// atOnce retries without a wait.
type atOnce struct{}

// NextRetry implements river.ClientRetryPolicy.
func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

type library struct {
	db       *sql.DB
	client   *river.Client[*sql.Tx]
	inserter *river.Client[*sql.Tx] // without workers
	handler  contest.Handler        // set before the client starts
	options  *river.InsertOpts
}

func open(ctx context.Context, s contest.Setup) (contest.Library, error) {
	db, err := sqldriver.Open(ctx, s.Folder, sqldriver.Options{Synchronous: s.Synchronous, Immediate: true})
	if err != nil {
		return nil, err
	}
	l := &library{db: db, options: &river.InsertOpts{MaxAttempts: s.Scenario.Attempts()}}
	if err := l.connect(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

func (l *library) connect(ctx context.Context) error {
	driver := riversqlite.New(l.db)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if l.inserter, err = river.NewClient(driver, &river.Config{Logger: quiet, FetchCooldown: cool}); err != nil {
		return err
	}
	list := river.NewWorkers()
	river.AddWorker(list, &worker{library: l})
	l.client, err = river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           list,
		Logger:            quiet,
		FetchCooldown:     cool,
		FetchPollInterval: poll,
		RetryPolicy:       atOnce{},
	})
	return err
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	_, err := l.client.Insert(ctx, arguments{t}, l.options)
	return err
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	params := make([]river.InsertManyParams, len(list))
	for i, t := range list {
		params[i] = river.InsertManyParams{Args: arguments{t}, InsertOpts: l.options}
	}
	_, err := l.inserter.InsertManyFast(ctx, params)
	return err
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	l.handler = handle
	if err := l.client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return l.client.Stop(ctx) }, nil
}

func (l *library) Left(ctx context.Context) (int, error) {
	return sqldriver.Count(ctx, l.db,
		"select count(*) from river_job where state in ('available', 'running', 'retryable', 'scheduled', 'pending')")
}

func (l *library) Dead(ctx context.Context) (int, error) {
	return sqldriver.Count(ctx, l.db, "select count(*) from river_job where state = 'discarded'")
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return sqldriver.Each(ctx, l.db, "select json(args) from river_job", func(body []byte) error {
		t, err := contest.Decode(body)
		if err != nil {
			return err
		}
		return yield(t)
	})
}

func (l *library) Close() error { return l.db.Close() }
