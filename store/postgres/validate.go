package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// scratch is a schema that exists for one transaction, which is undone.
const scratch = "nixie_validate"

// Validate implements store.Schema.
func (m *Schema) Validate(ctx context.Context) (list []store.Violation, err error) {
	err = m.on(ctx, func(c *pgx.Conn) error {
		known, hashes, err := m.read(ctx, c)
		if err != nil {
			return err
		}
		list, err = m.compare(ctx, c, known, hashes)
		return err
	})
	return list, err
}

// compare returns the differences from the schema that the applied migrations make, and from their
// hashes. It runs them once more, into a schema of a transaction that is undone: so a version of
// PostgreSQL describes both schemas in the same words.
func (m *Schema) compare(ctx context.Context, c *pgx.Conn, known []store.Migration, hashes map[int]string) ([]store.Violation, error) {
	t, err := c.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Rollback(context.WithoutCancel(ctx)) }()
	var made bool
	// With no search path every name is shown with its schema.
	if err := t.QueryRow(ctx, "select set_config('search_path', '', true) = '' and count(*) > 0 from pg_namespace where nspname = $1",
		m.opts.Schema).Scan(&made); err != nil {
		return nil, err
	}
	if !made {
		return nil, nixie.Errorf(nixie.CodeNotFound, "store %s has no schema %s: run %s", m.address, m.opts.Schema,
			m.command(m.user(), "up"))
	}
	have, err := describe(ctx, t, m.opts.Schema)
	if err != nil {
		return nil, err
	}
	want, err := m.rehearse(ctx, t, known)
	if codeOf(err) == errPrivilege {
		err = nixie.Errorf(nixie.CodeDenied,
			"role %q may not make a schema in %s, and needs to, for a moment, to compare with: run this as the role that migrates",
			m.user(), m.address)
	}
	if err != nil {
		return nil, err
	}
	for _, step := range known {
		if is := hashes[step.Version]; is != "" {
			thing := fmt.Sprint("migration ", step.Version)
			have[thing], want[thing] = is, step.Hash
		}
	}
	return store.Compare(want, have), nil
}

// rehearse describes what the migrations make.
func (m *Schema) rehearse(ctx context.Context, t pgx.Tx, known []store.Migration) (map[string]string, error) {
	as := *m
	as.opts.Schema, as.texts = scratch, textsOf(scratch)
	script := "create schema " + scratch + ";\n" + as.named("make_migrations.sql") + "\n"
	for _, step := range known {
		if step.Applied {
			script += strings.ReplaceAll(as.named(step.Up), " concurrently ", " ")
		}
	}
	for _, statement := range statements(script) {
		if _, err := t.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return describe(ctx, t, scratch)
}

// describe reads the catalog of a schema, with an @ for its name.
func describe(ctx context.Context, t pgx.Tx, schema string) (map[string]string, error) {
	rows, err := t.Query(ctx, texts()["describe_schema"], schema)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var thing, how string
	_, err = pgx.ForEachRow(rows, []any{&thing, &how}, func() error {
		found[thing] = strings.ReplaceAll(how, schema+".", "@.")
		return nil
	})
	return found, err
}
