// Package river has the tasks by github.com/riverqueue/river.
package river

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

type shipOrder struct{ Order int }

// Kind implements river.JobArgs.
func (shipOrder) Kind() string { return "ship-order" }

// Take takes in an order. Its row and its job commit together.
func Take(ctx context.Context, pool *pgxpool.Pool, client *river.Client[pgx.Tx]) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var order int
		if err := tx.QueryRow(ctx, "insert into orders default values returning number").Scan(&order); err != nil {
			return err
		}
		_, err := client.InsertTx(ctx, tx, shipOrder{order}, nil)
		return err
	})
}
