package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/nixie-go/nixie"
)

// row is one row of an answer.
type row interface{ Scan(...any) error }

// stmt is a statement with what is done with its answer.
type stmt struct {
	query string
	args  []any
	each  func(row) error        // for each row; nil: the rows do not matter
	done  func(tag string) error // with what the server says it did
}

// asker runs statements in their order, in one round trip if it can.
type asker interface {
	ask(ctx context.Context, list []stmt) error
}

// piped sends statements as one pipeline: to a connection of ours or a transaction
// of the caller.
type piped struct {
	to interface {
		SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	}
}

func (p piped) ask(ctx context.Context, list []stmt) error {
	batch := &pgx.Batch{}
	for i := range list {
		batch.Queue(list[i].query, list[i].args...)
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

// Codes of PostgreSQL that are answers to something that we do.
const (
	errSerialization = "40001"
	errDeadlock      = "40P01"
	errUnique        = "23505"
	errLockTimeout   = "55P03"
	errCanceled      = "57014"
	errReadOnly      = "25006"
	errPrivilege     = "42501"
	errNoTable       = "42P01"
	errNoSchema      = "3F000"
	errDependent     = "2BP01"
)

// codeOf is the code of an error that PostgreSQL gave, else empty.
func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// isRace reports whether a transaction failed only because another one was at the
// same rows: it is run again.
func isRace(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, errRaced) || errors.As(err, &pg) && (pg.Code == errSerialization || pg.Code == errDeadlock || pg.Code == errUnique)
}

// explain makes an error of the driver one for people, with its code.
func (s *site) explain(err error) error {
	if err == nil || isOurs(err) {
		return err
	}
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, errRaced):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: others are at the same messages: do it again", s.place)
	case !errors.As(err, &pg):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s cannot be reached: %w", s.place, err)
	}
	switch {
	case pg.Code == errLockTimeout:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: others held what this call needs for more than %s: %w", s.place, s.opts.LockWait, err)
	case pg.Code == errReadOnly:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s is read-only, a replica perhaps: name the server that is written to: %w", s.place, err)
	case pg.Code == errPrivilege:
		return nixie.Errorf(nixie.CodeDenied, "store %s: role %q may not do that: as the owner of the schema, run nixie migrate up --grant %[2]s: %w", s.place, s.user(), err)
	case pg.Code == errNoTable, pg.Code == errNoSchema:
		return nixie.Errorf(nixie.CodeNotFound, "store %s has no schema %s: let a role that may create it open it once: %w", s.place, s.opts.Schema, err)
	case isRace(err), pg.Code == errCanceled, unavailable(pg.Code):
		return nixie.Errorf(nixie.CodeUnavailable, "store %s: %w", s.place, err)
	}
	return nixie.Errorf(nixie.CodeInternal, "store %s: %w", s.place, err)
}

// unavailable reports whether a code is of a class that goes away by itself or by
// an administrator: connection, credentials, database, resources, intervention,
// system.
func unavailable(code string) bool {
	for _, class := range [...]string{"08", "28", "3D", "53", "57", "58"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}
