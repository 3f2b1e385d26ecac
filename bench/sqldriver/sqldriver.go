// Package sqldriver opens a file of SQLite through database/sql for the peers. It uses the fastest
// driver of the build: mattn/go-sqlite3 with a C compiler, modernc.org/sqlite without one.
package sqldriver

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
)

// Options are the settings that a peer's documentation asks for.
type Options struct {
	Synchronous string // NORMAL or FULL
	Immediate   bool   // transactions take the write lock when they begin
}

// Open opens the file queue.db in a folder, in WAL mode and with one connection,
// as each of the peers advises.
func Open(ctx context.Context, folder string, o Options) (*sql.DB, error) {
	db, err := sql.Open(name, source(filepath.Join(folder, "queue.db"), o))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Count runs a query whose answer is one number.
func Count(ctx context.Context, db *sql.DB, query string, args ...any) (n int, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// Each yields the bytes of a query's only column.
func Each(ctx context.Context, db *sql.DB, query string, yield func([]byte) error) (err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		if err := yield(body); err != nil {
			return err
		}
	}
	return rows.Err()
}

// lock returns the option's value for both drivers.
func lock(o Options) string {
	if o.Immediate {
		return "immediate"
	}
	return "deferred"
}
