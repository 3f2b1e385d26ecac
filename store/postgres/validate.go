package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// scratch is a schema that exists for one transaction, which is undone.
const scratch = "nixie_validate"

// Validate implements store.Schema. It runs the migrations once more, into a schema of a
// transaction that is undone: so a version of PostgreSQL describes both schemas in the same words.
func (m *Schema) Validate(ctx context.Context) (list []store.Violation, err error) {
	err = m.on(ctx, func(c *pgx.Conn) error {
		known, err := m.applied(ctx, c)
		if err != nil {
			return err
		}
		t, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = t.Rollback(context.WithoutCancel(ctx)) }()
		var made bool
		// With no search path every name is shown with its schema.
		if err := t.QueryRow(ctx, "select set_config('search_path', '', true) = '' and count(*) > 0 from pg_namespace where nspname = $1",
			m.opts.Schema).Scan(&made); err != nil {
			return err
		}
		if !made {
			return nixie.Errorf(nixie.CodeNotFound, "store %s has no schema %s: run %s", m.address, m.opts.Schema,
				m.command(m.user(), "up"))
		}
		have, err := describe(ctx, t, m.opts.Schema)
		if err != nil {
			return err
		}
		want, err := m.rehearse(ctx, t, known)
		if codeOf(err) == errPrivilege {
			return nixie.Errorf(nixie.CodeDenied,
				"role %q may not make a schema in %s, and needs to, for a moment, to compare with: run this as the role that migrates",
				m.user(), m.address)
		}
		list = store.Compare(want, have)
		return err
	})
	return list, err
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
