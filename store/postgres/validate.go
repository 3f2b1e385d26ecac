package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// scratch is a schema that lives for one transaction, which is undone.
const scratch = "nixie_validate"

// catalog is what PostgreSQL knows of a schema: kind and name of each thing, and how
// it is. What people may tune without harm, such as fill factors, is not in it.
const catalog = `select 'table ' || c.relname, case c.relpersistence when 'p' then 'logged' else 'not logged' end
	from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
union all select 'view ' || c.relname, pg_get_viewdef(c.oid) from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('v', 'm')
union all select 'sequence ' || c.relname, format_type(s.seqtypid, null) || ' by ' || s.seqincrement || case when s.seqcycle then ' cycle' else '' end
	from pg_class c join pg_sequence s on s.seqrelid = c.oid where c.relnamespace = $1::regnamespace
union all select 'column ' || c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
		case when a.attidentity <> '' then 'identity ' || a.attidentity::text end, 'default ' || pg_get_expr(d.adbin, d.adrelid))
	from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
	where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
union all select 'index ' || c.relname, pg_get_indexdef(c.oid) || case when i.indisvalid then '' else ' (not valid: its making was interrupted)' end
	from pg_class c join pg_index i on i.indexrelid = c.oid where c.relnamespace = $1::regnamespace
union all select 'constraint ' || c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
	from pg_constraint k join pg_class c on c.oid = k.conrelid where c.relnamespace = $1::regnamespace and k.contype <> 'n'
union all select 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
	from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = $1::regnamespace and not t.tgisinternal
union all select 'function ' || p.proname, pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = $1::regnamespace`

// Validate implements store.Schema. The migrations are run once more, into a schema
// of a transaction that is undone: so no version of PostgreSQL spells what it has
// otherwise than what is compared with it.
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
		// With no search path every name is spelled with its schema.
		if err := t.QueryRow(ctx, "select set_config('search_path', '', true) = '' and count(*) > 0 from pg_namespace where nspname = $1", m.opts.Schema).Scan(&made); err != nil {
			return err
		}
		if !made {
			return nixie.Errorf(nixie.CodeNotFound, "store %s has no schema %s: run %s", m.place, m.opts.Schema, m.command(m.user(), "up"))
		}
		have, err := describe(ctx, t, m.opts.Schema)
		if err != nil {
			return err
		}
		want, err := m.rehearse(ctx, t, known)
		if codeOf(err) == errPrivilege {
			return nixie.Errorf(nixie.CodeDenied, "role %q may not make a schema in %s, and needs to, for a moment, to compare with: run this as the role that migrates", m.user(), m.place)
		}
		list = store.Compare(want, have)
		return err
	})
	return list, err
}

// rehearse describes what the migrations make.
func (m *Schema) rehearse(ctx context.Context, t pgx.Tx, known []store.Migration) (map[string]string, error) {
	as := *m
	as.opts.Schema = scratch
	script := "create schema " + scratch + ";\n" + as.named(book) + "\n"
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
	rows, err := t.Query(ctx, catalog, schema)
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
