package ours

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/postgres/tasks"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

func handler(ship tasks.Ship) nixie.Handler {
	return nixie.Routes(shipOrder.Handle(func(ctx context.Context, job *nixie.Job[int]) error {
		err := ship(ctx, job.Body)
		if errors.Is(err, tasks.ErrWrong) {
			return nixie.Permanent(err)
		}
		return err
	}, nixie.Attempts(8), nixie.Backoff("linear base=1s"), nixie.Timeout(30*time.Second)))
}

// Work ships orders until ctx ends.
func Work(ctx context.Context, st *postgres.Store, ship tasks.Ship) error {
	w, err := worker.New(worker.Config{Source: store.NewSource(st, "shipping"), Handler: handler(ship), Concurrency: 10})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
