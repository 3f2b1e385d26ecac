package river

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/nixie-go/nixie/bench/postgres/tasks"
)

// InsertOpts implements river.JobArgsWithInsertOpts.
func (shipOrder) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 8} }

type shipper struct {
	river.WorkerDefaults[shipOrder]
	ship tasks.Ship
}

// Timeout implements river.Worker.
func (*shipper) Timeout(*river.Job[shipOrder]) time.Duration { return 30 * time.Second }

// NextRetry implements river.Worker.
func (*shipper) NextRetry(job *river.Job[shipOrder]) time.Time {
	return time.Now().Add(time.Duration(job.Attempt) * time.Second)
}

// Work implements river.Worker.
func (w *shipper) Work(ctx context.Context, job *river.Job[shipOrder]) error {
	err := w.ship(ctx, job.Args.Order)
	if errors.Is(err, tasks.ErrWrong) {
		return river.JobCancel(err)
	}
	return err
}

// Work ships orders until ctx ends.
func Work(ctx context.Context, pool *pgxpool.Pool, ship tasks.Ship) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &shipper{ship: ship})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}
