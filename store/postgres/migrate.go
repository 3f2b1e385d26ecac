package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
)

// Migrations are numbered pairs of files, applied in order, each in one
// transaction together with the schema number that it leads to.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	schemaVersion = 1       // that this program reads and writes
	leastServer   = 130_000 // PostgreSQL 13
)

// migrate brings the schema up to schemaVersion, or refuses a newer one without
// touching it.
func (s *Store) migrate(ctx context.Context) error {
	var server int
	if err := s.pool.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&server); err != nil {
		return err
	}
	if server < leastServer {
		return nixie.Errorf(nixie.CodeUnavailable, "PostgreSQL %d is too old: use 13 or newer", server/10_000)
	}
	have, err := s.schemaOf(ctx, s.pool)
	if err != nil || have == schemaVersion {
		return err
	}
	if have == 0 && s.opts.MustExist {
		return nixie.Errorf(nixie.CodeNotFound, "no store in schema %s of %s: nixie run, enqueue and queue set make one", s.opts.Schema, s.place)
	}
	return pgx.BeginFunc(ctx, s.pool, func(t pgx.Tx) error {
		// Others that make the same schema wait here, and find it made.
		if _, err := t.Exec(ctx, "select pg_advisory_xact_lock(hashtext($1), 0)", "nixie "+s.opts.Schema); err != nil {
			return err
		}
		if have, err = s.schemaOf(ctx, t); err != nil {
			return err
		}
		for v := have + 1; v <= schemaVersion; v++ {
			if err := s.step(ctx, t, v); err != nil {
				return fmt.Errorf("migration %d: %w", v, err)
			}
		}
		return nil
	})
}

// step applies one migration.
func (s *Store) step(ctx context.Context, t pgx.Tx, version int) error {
	script, err := migration(version, "up")
	if err != nil {
		return err
	}
	if version == 1 {
		script = "create schema if not exists " + s.opts.Schema + ";\n" + script
	}
	script += fmt.Sprintf("\ninsert into @.meta (name, value) values ('schema', '%d') on conflict (name) do update set value = excluded.value;", version)
	return errors.Join(t.Conn().PgConn().Exec(ctx, s.named(script)).Close())
}

// schemaOf returns the schema number, 0 where there is none.
func (s *Store) schemaOf(ctx context.Context, on interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (int, error) {
	var made bool
	if err := on.QueryRow(ctx, "select to_regclass($1) is not null", s.opts.Schema+".meta").Scan(&made); err != nil || !made {
		return 0, err
	}
	var text string
	if err := on.QueryRow(ctx, s.named("select value from @.meta where name = 'schema'")).Scan(&text); err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return 0, nixie.Errorf(nixie.CodeInvalid, "schema %s of %s is another program's: name another schema", s.opts.Schema, s.place)
	case version > schemaVersion:
		return 0, nixie.Errorf(nixie.CodeInvalid, "store %s has schema %d, this program knows up to %d: use a newer nixie", s.place, version, schemaVersion)
	}
	return version, nil
}

func migration(version int, direction string) (string, error) {
	names, err := fs.Glob(migrations, fmt.Sprintf("migrations/%04d_*.%s.sql", version, direction))
	if err != nil || len(names) != 1 {
		return "", nixie.Errorf(nixie.CodeInternal, "migration %d %s: want one file, have %s", version, direction, strings.Join(names, ", "))
	}
	data, err := fs.ReadFile(migrations, names[0])
	return string(data), err
}
