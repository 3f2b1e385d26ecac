// Package database opens the database of a measurement for peers and limits.
package database

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie/bench/contest"
)

// connections is the number that 32 producers need.
const connections = 40

// Open opens a pool.
func Open(ctx context.Context, s contest.Setup) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	return pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
}

// Count runs a query whose answer is one number.
func Count(ctx context.Context, pool *pgxpool.Pool, query string) (n int, err error) {
	err = pool.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// Each yields the tasks in a query's only column.
func Each(ctx context.Context, pool *pgxpool.Pool, query string, yield func(contest.Task) error) error {
	rows, err := pool.Query(ctx, query)
	if err != nil {
		return err
	}
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&body}, func() error {
		t, err := contest.Decode(body)
		if err != nil {
			return err
		}
		return yield(t)
	})
	return err
}
