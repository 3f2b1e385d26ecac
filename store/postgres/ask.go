package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// row is one row of an answer.
type row interface{ Scan(...any) error }

// stmt is a statement with functions for its answer.
type stmt struct {
	query string
	args  []any
	rows  *copying               // the rows of a COPY
	each  func(row) error        // for each row; nil: the rows do not matter
	done  func(tag string) error // with the command tag of the server
}

// asker runs statements in their order, in one round trip if it can.
type asker interface {
	ask(ctx context.Context, list []stmt) error
}

// piped sends statements as one pipeline: to a connection of ours or a transaction of the caller.
type piped struct {
	to interface {
		SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	}
}

func (p piped) ask(ctx context.Context, list []stmt) error {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(s stmt) bool { return s.rows != nil })
		switch {
		case n == 0:
			var err error
			if list, err = p.copy(ctx, list); err != nil {
				return err
			}
			continue
		case n < 0:
			n = len(list)
		}
		if err := p.pipe(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// pipe sends statements that are no COPY.
func (p piped) pipe(ctx context.Context, list []stmt) error {
	batch := &pgx.Batch{}
	for i := range list {
		batch.Queue(list[i].query, eachOf(list[i].args, argument)...)
	}
	results := p.to.SendBatch(ctx, batch)
	for i := range list {
		if err := list[i].take(results); err != nil {
			if closed := results.Close(); errors.As(closed, new(*pgconn.PgError)) && !errors.As(err, new(*pgconn.PgError)) && !isOurs(err) {
				err = closed
			}
			return err
		}
	}
	return results.Close()
}

// take reads the answer to a statement.
func (s *stmt) take(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if s.each == nil {
			continue
		}
		if err := s.each(rows); err != nil {
			return err
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil || s.done == nil {
		return err
	}
	return s.done(rows.CommandTag().String())
}
