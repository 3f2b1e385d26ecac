// Package river lets github.com/riverqueue/river with its driver riverpgxv5 take
// part.
//
// Of 100 to 10,000 workers and cooldowns of 1 and 5 ms these drained the most. A separate client
// inserts jobs, as a program that only produces would.
package river

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/postgres/database"
)

const (
	batch   = 5000
	workers = 500
	cool    = time.Millisecond // the least that can be set; also how often an inserter tells that there is work
	poll    = 20 * time.Millisecond
)

// Entrant is River on PostgreSQL.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "river", Kind: contest.Peer, Open: open, Module: "github.com/riverqueue/river",
		Settings: "riverpgxv5, 500 workers, fetch cooldown 1 ms, retry at once, 5000 jobs an InsertManyFast",
	}
}

type arguments struct{ contest.Task }

// Kind implements river.JobArgs.
func (arguments) Kind() string { return "task" }

type worker struct {
	river.WorkerDefaults[arguments]
	handler contest.Handler
}

// Work implements river.Worker.
func (w *worker) Work(_ context.Context, job *river.Job[arguments]) error {
	return w.handler.Handle(job.Args.Task)
}

// atOnce retries without a wait.
type atOnce struct{}

// NextRetry implements river.ClientRetryPolicy.
func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

type library struct {
	pool     *pgxpool.Pool
	inserter *river.Client[pgx.Tx]
	options  *river.InsertOpts
}

func open(ctx context.Context, s contest.Setup) (contest.Library, error) {
	pool, err := database.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	l := &library{pool: pool, options: &river.InsertOpts{MaxAttempts: s.Scenario.Attempts()}}
	if err := l.connect(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

func (l *library) connect(ctx context.Context) error {
	driver, quiet := riverpgxv5.New(l.pool), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	l.inserter, err = river.NewClient(driver, &river.Config{Logger: quiet, FetchCooldown: cool})
	return err
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	_, err := l.inserter.Insert(ctx, arguments{t}, l.options)
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
	list := river.NewWorkers()
	river.AddWorker(list, &worker{handler: handle})
	client, err := river.NewClient(riverpgxv5.New(l.pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           list,
		Logger:            slog.New(slog.DiscardHandler),
		FetchCooldown:     cool,
		FetchPollInterval: poll,
		RetryPolicy:       atOnce{},
	})
	if err == nil {
		err = client.Start(ctx)
	}
	return func() error { return client.Stop(ctx) }, err
}

func (l *library) Left(ctx context.Context) (int, error) {
	return database.Count(ctx, l.pool,
		"select count(*) from river_job where state in ('available', 'running', 'retryable', 'scheduled', 'pending')")
}

func (l *library) Dead(ctx context.Context) (int, error) {
	return database.Count(ctx, l.pool, "select count(*) from river_job where state = 'discarded'")
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return database.Each(ctx, l.pool, "select args from river_job", yield)
}

func (l *library) Close() error {
	l.pool.Close()
	return nil
}
