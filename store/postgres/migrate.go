package postgres

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Migrations are numbered pairs of files, applied in order, each in one transaction
// together with the note that it was.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate checks that the schema is the one that this program knows, and makes it where there is
// none. An older one is left to nixie migrate: other processes may be using it.
func (s *Store) migrate(ctx context.Context) error {
	list, err := s.schema.applied(ctx, s.own)
	if err != nil {
		return err
	}
	switch countApplied(list) {
	case len(list):
		return nil
	case 0:
		return s.make(ctx)
	}
	return s.refuseOlder(ctx)
}

// make makes the schema, or says who may.
func (s *Store) make(ctx context.Context) error {
	_, err := s.schema.Up(ctx, 0, store.Grants{})
	if nixie.CodeOf(err) == nixie.CodeDenied {
		owner := s.owners(ctx)
		return nixie.Errorf(nixie.CodeDenied, "store %s has no schema %s, and role %q may not make it: as %q, or another that may, run %s",
			s.address, s.opts.Schema, s.user(), owner, s.command(owner, "up --grant "+s.user()))
	}
	return err
}

// refuseOlder says what to do about a schema that lacks migrations: nothing, if a process that was
// just making it has made it whole.
func (s *Store) refuseOlder(ctx context.Context) error {
	return s.schema.alone(ctx, func(c *pgx.Conn) error {
		list, err := s.schema.identified(ctx, c)
		if nixie.CodeOf(err) == nixie.CodeDenied {
			list, err = s.schema.applied(ctx, c) // the role that migrates may compare
		}
		have := countApplied(list)
		if err != nil || have == len(list) {
			return err
		}
		return nixie.Errorf(nixie.CodeConflict, "store %s has schema version %d, this program needs %d: run %s", s.address, have, len(list),
			s.command(s.owners(ctx), "up"))
	})
}

// owners returns the role that owns the schema, or else the database, or else the role of this
// process.
func (s *Store) owners(ctx context.Context) string {
	owner := s.user()
	_ = s.own.QueryRow(ctx, s.named("owner_of_schema.sql"), s.opts.Schema).Scan(&owner) // on an error the text is less exact
	return owner
}
