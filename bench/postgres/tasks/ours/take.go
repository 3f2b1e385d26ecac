// Package ours has the tasks by Nixie.
package ours

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/postgres"
)

var shipOrder = nixie.NewType[int]("ship-order", nixie.Queue("shipping"))

// Take takes in an order. Its row and its message commit together.
func Take(ctx context.Context, pool *pgxpool.Pool, st *postgres.Store) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var order int
		if err := tx.QueryRow(ctx, "insert into orders default values returning number").Scan(&order); err != nil {
			return err
		}
		_, err := shipOrder.Enqueue(ctx, st.Tx(tx), order)
		return err
	})
}
