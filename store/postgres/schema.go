package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Schema applies migrations to the schema of a store: nixie migrate works with it.
type Schema struct {
	endpoint
	list []store.Migration
}

var _ store.Schema = (*Schema)(nil)

// NewSchema reads the URL of a store. It connects to nothing.
func NewSchema(dsn string, opts Options) (*Schema, error) {
	at, err := locate(dsn, opts)
	if err != nil {
		return nil, err
	}
	return newSchema(at, migrations)
}

func newSchema(at endpoint, folder fs.FS) (*Schema, error) {
	list, err := store.ReadMigrations(folder)
	return &Schema{at, list}, err
}

// Scripts that give a role its rights. They may be run again.
var (
	//go:embed grants.sql
	grantRun string
	//go:embed grants_enqueue.sql
	grantEnqueue string
)

const (
	// A migration whose file begins so runs each statement by itself, for those that cannot be in a
	// transaction. Each has to be one that may run twice.
	onlineMark = "-- online\n"
	// A migration waits so long for a lock before it lets pass those that wait behind it, and tries
	// again.
	migrationLock = "2s"
	lockPause     = 50 * time.Millisecond
)

// on runs f on a connection without the limits of calls.
func (m *Schema) on(ctx context.Context, f func(*pgx.Conn) error) error {
	c, err := m.connection(ctx, "nixie migrate")
	if err != nil {
		return m.explain(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return m.explain(f(c))
}

// alone runs f while no other process changes this schema. It holds a lock of the session that does
// the work: when another process gets the lock, the last statement of this one has ended, also if
// the client is gone. A process that has to wait asks again and again: one long statement would
// hold a snapshot, and f waits for snapshots when it builds an index.
func (m *Schema) alone(ctx context.Context, f func(*pgx.Conn) error) error {
	return m.on(ctx, func(c *pgx.Conn) error {
		var session uint32
		if err := c.QueryRow(ctx, "select pg_backend_pid()").Scan(&session); err != nil {
			return err
		}
		if session != c.PgConn().PID() {
			// A pooler shares sessions: another client could get the one that has the lock.
			return nixie.Errorf(nixie.CodeInvalid,
				"store %s is behind a pooler: migrate by a URL of the server itself, then run by that of the pooler", m.address)
		}
		pause := time.NewTicker(lockPause)
		defer pause.Stop()
		for mine := false; ; {
			if err := c.QueryRow(ctx, "select pg_try_advisory_lock(hashtext($1), 0)", "nixie "+m.opts.Schema).Scan(&mine); err != nil {
				return err
			}
			if mine {
				return f(c)
			}
			select {
			case <-pause.C:
			case <-ctx.Done():
				return nixie.Errorf(nixie.CodeUnavailable, "another process changes schema %s of %s: wait for its end: %w", m.opts.Schema,
					m.address, ctx.Err())
			}
		}
	})
}

// querier is a connection, a pool or a transaction.
type querier interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
}

// read returns the migrations with those that were applied, and the hashes that the schema keeps of
// them. It refuses schemas of another program, and those with more migrations than ours.
func (m *Schema) read(ctx context.Context, on querier) (list []store.Migration, hashes map[int]string, err error) {
	list, hashes = slices.Clone(m.list), map[int]string{}
	var made, ours bool
	if err := on.QueryRow(ctx, m.named("find_migrations.sql"), m.opts.Schema).Scan(&made, &ours); err != nil || !made {
		return list, nil, err
	}
	if !ours {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid,
			"schema %s of %s is another program's: name another one by nixie_schema in the URL", m.opts.Schema, m.address)
	}
	rows, err := on.Query(ctx, m.named("migrations.sql"))
	if err != nil {
		return nil, nil, err
	}
	var version int
	var at time.Time
	var hash string
	_, err = pgx.ForEachRow(rows, []any{&version, &at, &hash}, func() error {
		if version < 1 || version > len(list) {
			return store.AnotherBuild(m.address, "it has schema version %d, ours is %d", version, len(list))
		}
		list[version-1].Applied, list[version-1].At, hashes[version] = true, at.UTC(), hash
		return nil
	})
	return list, hashes, err
}

// applied is read, and refuses hashes of another build. It compares no schema without hashes.
func (m *Schema) applied(ctx context.Context, on querier) ([]store.Migration, error) {
	list, hashes, err := m.read(ctx, on)
	if err == nil && countApplied(list) >= store.HashesSince {
		err = store.CompareHashes(m.address, list, hashes)
	}
	return list, err
}

// countApplied returns the number of migrations that were applied.
func countApplied(list []store.Migration) (n int) {
	for _, step := range list {
		if step.Applied {
			n++
		}
	}
	return n
}

// identified is applied, and refuses a schema without hashes that our migrations would have made
// differently.
func (m *Schema) identified(ctx context.Context, c *pgx.Conn) ([]store.Migration, error) {
	list, err := m.applied(ctx, c)
	if n := countApplied(list); err != nil || n == 0 || n >= store.HashesSince {
		return list, err
	}
	differences, err := m.compare(ctx, c, list, nil)
	if err != nil {
		return nil, err
	}
	return list, store.CompareSchemas(m.address, differences)
}

// Migrations implements store.Schema.
func (m *Schema) Migrations(ctx context.Context) (list []store.Migration, err error) {
	err = m.on(ctx, func(c *pgx.Conn) error {
		list, err = m.identified(ctx, c)
		if nixie.CodeOf(err) == nixie.CodeDenied {
			list, err = m.applied(ctx, c) // a role that may not compare can still be shown the list
		}
		return err
	})
	return list, err
}

// Up implements store.Schema.
func (m *Schema) Up(ctx context.Context, version int, grants store.Grants) (done []store.Migration, err error) {
	err = m.alone(ctx, func(c *pgx.Conn) error {
		list, err := m.identified(ctx, c)
		if err != nil {
			return err
		}
		steps, err := store.Steps(list, version, false)
		if err != nil {
			return err
		}
		if len(steps) > 0 && steps[0].Version == 1 {
			if err := m.begin(ctx, c); err != nil {
				return err
			}
		}
		for _, step := range steps {
			if err := m.run(ctx, c, step.Up, m.noted(step), nil); err != nil {
				return inStep(step, err)
			}
			step.Applied = true
			done = append(done, step)
		}
		return m.grant(ctx, c, grants)
	})
	return done, err
}

// begin makes the schema, unless an administrator has made it, and the table of migrations.
func (m *Schema) begin(ctx context.Context, c *pgx.Conn) error {
	var made bool
	if err := c.QueryRow(ctx, "select count(*) > 0 from pg_namespace where nspname = $1", m.opts.Schema).Scan(&made); err != nil {
		return err
	}
	if !made {
		if _, err := c.Exec(ctx, "create schema "+m.opts.Schema); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, m.named("make_migrations.sql"))
	return err
}

// noted returns what notes a migration. An online one is noted by one statement, so that it is
// noted whole wherever it is cut. The first that has a column for hashes notes those before it too.
func (m *Schema) noted(step store.Migration) string {
	if step.Version > store.HashesSince {
		return fmt.Sprintf("insert into @.migration (version, name, hash) values (%d, '%s', '%s');", step.Version, step.Name, step.Hash)
	}
	noted := fmt.Sprintf("insert into @.migration (version, name) values (%d, '%s');", step.Version, step.Name)
	if step.Version < store.HashesSince {
		return noted
	}
	const hashes = "update @.migration m set hash = h.hash from (values %s) h (version, hash) where h.version = m.version;"
	return noted + "\n" + fmt.Sprintf(hashes, store.HashRows(m.list, step.Version))
}

// run runs a script with the statements that note it, after look has checked what is there.
func (m *Schema) run(ctx context.Context, c *pgx.Conn, script, noted string, look func(pgx.Tx) error) (err error) {
	list := statements(m.named(script + "\n" + noted))
	if strings.HasPrefix(script, onlineMark) {
		for _, statement := range list {
			if _, err := c.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
	for range maxTries {
		err = pgx.BeginFunc(ctx, c, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, "select set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true)",
				migrationLock); err != nil {
				return err
			}
			if look != nil {
				if err := look(t); err != nil {
					return err
				}
			}
			for _, statement := range list {
				if _, err := t.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
		if codeOf(err) != errLockTimeout {
			break
		}
	}
	return err
}

// statements splits a script. A statement ends at a semicolon at the end of a line that is not
// between two $$.
func statements(script string) (list []string) {
	var one strings.Builder
	quoted := false
	for line := range strings.Lines(script) {
		code, _, _ := strings.Cut(line, "--")
		if quoted {
			code = line
		}
		one.WriteString(line)
		quoted = quoted != (strings.Count(code, "$$")%2 == 1)
		if !quoted && strings.HasSuffix(strings.TrimSpace(code), ";") {
			list = append(list, one.String())
			one.Reset()
		}
	}
	return list
}

// inStep adds to an error which migration met it.
func inStep(step store.Migration, err error) error {
	if isOurs(err) {
		return err
	}
	return fmt.Errorf("migration %d: %w", step.Version, err)
}

// grant gives roles their rights.
func (m *Schema) grant(ctx context.Context, c *pgx.Conn, grants store.Grants) error {
	for _, role := range [...]string{grants.Run, grants.Enqueue} {
		if err := m.mayBeGranted(ctx, c, role); err != nil {
			return err
		}
	}
	return m.run(ctx, c, m.granting(grants), "", nil)
}

// mayBeGranted refuses a role that there is not, and one that needs no rights.
func (m *Schema) mayBeGranted(ctx context.Context, c *pgx.Conn, role string) error {
	if role == "" {
		return nil
	}
	var owner string
	var owns bool
	err := c.QueryRow(ctx, m.named("role_of_schema.sql"), m.opts.Schema, role).Scan(&owner, &owns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nixie.Errorf(nixie.CodeInvalid, "there is no role %q to grant anything to: create it first", role)
	case err != nil:
		return err
	case owns:
		return nixie.Errorf(nixie.CodeInvalid, "role %q may do all that %q may, who owns schema %s: grant to a role of its own", role,
			owner, m.opts.Schema)
	}
	return nil
}

// granting returns the script that grants.
func (m *Schema) granting(grants store.Grants) (script string) {
	for _, g := range [...]struct{ role, script string }{{grants.Run, grantRun}, {grants.Enqueue, grantEnqueue}} {
		if g.role != "" {
			script += strings.NewReplacer("SCHEMA", m.opts.Schema, "ROLE", pgx.Identifier{g.role}.Sanitize()).Replace(g.script)
		}
	}
	return script
}

// Down implements store.Schema.
func (m *Schema) Down(ctx context.Context, version int, lose bool) (done []store.Migration, err error) {
	err = m.alone(ctx, func(c *pgx.Conn) error {
		list, err := m.identified(ctx, c)
		if err != nil {
			return err
		}
		steps, err := store.Steps(list, version, true)
		if err != nil {
			return err
		}
		for _, step := range steps {
			look := func(t pgx.Tx) error { return m.spared(ctx, t, lose) }
			if err := m.run(ctx, c, step.Down, struck(step), look); err != nil {
				return inStep(step, err)
			}
			step.Applied, step.At = false, time.Time{}
			done = append(done, step)
		}
		if len(done) > 0 && done[len(done)-1].Version == 1 {
			return m.leave(ctx, c)
		}
		return nil
	})
	return done, err
}

// struck returns the statement that removes the note of a migration. With the first the table goes.
func struck(step store.Migration) string {
	if step.Version == 1 {
		return "drop table @.migration;\n"
	}
	return fmt.Sprintf("delete from @.migration where version = %d;\n", step.Version)
}

// spared locks all tables and refuses to go on where they have rows.
func (m *Schema) spared(ctx context.Context, t pgx.Tx, lose bool) error {
	rows, err := t.Query(ctx, m.named("list_tables.sql"), m.opts.Schema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 || lose {
		return err
	}
	if _, err := t.Exec(ctx, "lock table "+strings.Join(tables, ", ")+" in access exclusive mode"); err != nil {
		return err
	}
	var full []string
	for _, table := range tables {
		var some bool
		if err := t.QueryRow(ctx, "select exists (select from "+table+")").Scan(&some); err != nil {
			return err
		}
		if some {
			full = append(full, table)
		}
	}
	if len(full) == 0 {
		return nil
	}
	return nixie.Errorf(nixie.CodeConflict, "store %s has data that would be lost, in %s: give --lose-data if it is not needed", m.address,
		strings.Join(full, ", "))
}

// leave removes the schema if nothing else is in it and we may remove it.
func (m *Schema) leave(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "drop schema "+m.opts.Schema)
	switch codeOf(err) {
	case errDependent, errPrivilege:
		return nil
	}
	return err
}

// Script implements store.Schema.
func (m *Schema) Script(down bool, grants store.Grants) (string, error) {
	var b strings.Builder
	part := func(script, noted string) {
		if strings.HasPrefix(script, onlineMark) {
			fmt.Fprintf(&b, "%s\n%s\n", m.named(script), m.named(noted))
			return
		}
		fmt.Fprintf(&b, "begin;\n%s\n%scommit;\n\n", m.named(script), m.named(noted))
	}
	if !down {
		fmt.Fprintf(&b, "create schema if not exists %s;\n%s\n\n", m.opts.Schema, m.named("make_migrations.sql"))
		for _, step := range m.list {
			part(step.Up, m.noted(step))
		}
		b.WriteString(m.named(m.granting(grants)))
		return b.String(), nil
	}
	for i := range m.list {
		step := m.list[len(m.list)-1-i]
		part(step.Down, struck(step))
	}
	fmt.Fprintf(&b, "drop schema %s;\n", m.opts.Schema)
	return b.String(), nil
}
