package postgres

import (
	"context"
	"embed"

	"github.com/nixie-go/nixie"
)

// Migrations are numbered pairs of files, applied in order, each in one transaction
// together with the note that it was.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate checks that the schema is the one that this program knows, and makes it where there is
// none. An older one is left to nixie migrate: other processes may be using it.
func (s *Store) migrate(ctx context.Context) error {
	m := s.schema
	list, err := m.applied(ctx, s.pool)
	if err != nil {
		return err
	}
	have := 0
	for _, step := range list {
		if step.Applied {
			have = step.Version
		}
	}
	switch {
	case have == len(list):
		return nil
	case have > 0:
		return nixie.Errorf(nixie.CodeConflict, "store %s has schema version %d, this program needs %d: run %s", s.address, have, len(list),
			s.command(s.owners(ctx), "up"))
	}
	_, err = m.Up(ctx, 0, "")
	if nixie.CodeOf(err) == nixie.CodeDenied {
		owner := s.owners(ctx)
		return nixie.Errorf(nixie.CodeDenied, "store %s has no schema %s, and role %q may not make it: as %q, or another that may, run %s",
			s.address, s.opts.Schema, s.user(), owner, s.command(owner, "up --grant "+s.user()))
	}
	return err
}

// owners returns the role that owns the schema, or else the database, or else the role of this
// process.
func (s *Store) owners(ctx context.Context) string {
	owner := s.user()
	_ = s.pool.QueryRow(ctx, s.named("owner_of_schema.sql"), s.opts.Schema).Scan(&owner) // on an error the text is less exact
	return owner
}
