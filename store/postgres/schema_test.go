package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// run runs statements as the role that owns the server.
func run(t testing.TB, url, statements string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	must(t, err)
	defer func() { must(t, c.Close(context.Background())) }()
	if err := c.PgConn().Exec(context.Background(), statements).Close(); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// freshSchema names a schema that is not there, and removes it in the end.
func freshSchema(t testing.TB) string {
	t.Helper()
	server.Need(t)
	schemas.Lock()
	schemas.made++
	name := fmt.Sprintf("t%d_%d", os.Getpid(), schemas.made)
	schemas.Unlock()
	t.Cleanup(func() { run(t, server.URL, "drop schema if exists "+name+" cascade") })
	return name
}

// growing is a history of migrations: what this program has, and two more, of which
// the last builds an index without stopping those who write.
func growing(t testing.TB) fs.FS {
	t.Helper()
	names, err := fs.Glob(postgres.Migrations(), "*/*.sql")
	must(t, err)
	numbered := func(n int, name string) string { return fmt.Sprintf("m/%04d_%s.sql", ours(t)+n, name) }
	folder := fstest.MapFS{
		numbered(1, "note.up"): {Data: []byte("alter table @.meta add column note text;\ncomment on column @.meta.note is 'why; -- or " +
			"who';\n")},
		numbered(1, "note.down"): {Data: []byte("alter table @.meta drop column note;\n")},
		numbered(2, "index.up"): {Data: []byte("-- online\n-- What is left of an interrupted one is not valid, and made again.\ndrop " +
			"index concurrently if exists @.message_type;\ncreate index concurrently message_type on @.message (type);\n")},
		numbered(2, "index.down"): {Data: []byte("drop index @.message_type;\n")},
	}
	for _, name := range names {
		data, err := fs.ReadFile(postgres.Migrations(), name)
		must(t, err)
		folder["m/"+name[strings.LastIndexByte(name, '/')+1:]] = &fstest.MapFile{Data: data}
	}
	return folder
}

// ours returns the version of the schema that this program has.
func ours(t testing.TB) int {
	t.Helper()
	list, err := store.ReadMigrations(postgres.Migrations())
	must(t, err)
	return len(list)
}

// valid checks that the schema equals that of its migrations, and that all are applied.
func valid(t *testing.T, m *postgres.Schema) {
	t.Helper()
	found, err := m.Validate(t.Context())
	must(t, err)
	for _, v := range found {
		t.Errorf("%s %s: %s", v.Rule, v.Subject, v.Text)
	}
	list, err := m.Migrations(t.Context())
	must(t, err)
	for _, step := range list {
		if !step.Applied || step.At.IsZero() {
			t.Errorf("migration %d is not applied", step.Version)
		}
	}
}

// TestMigrationInterrupted cuts the connections of a migration at one statement
// after the other, before it is run or before it is answered, and runs it again. Up
// or down, the second run ends what the first began. Each seed has a fifth of the statements.
func TestMigrationInterrupted(t *testing.T) {
	proof.Run(t, "migrations-postgres", func(t *testing.T, seed uint64) int {
		interruptMigrations(t, int(seed-1)%fifths)
		return 1
	})
}

// fifths counts the seeds that together cut at each statement.
const fifths = 5

func interruptMigrations(t *testing.T, fifth int) {
	w := newWire(t)
	schema := freshSchema(t)
	first, err := postgres.SchemaOf(w.url, postgres.Options{Schema: schema}, growing(t))
	must(t, err)
	again, err := postgres.SchemaOf(server.URL, postgres.Options{Schema: schema}, growing(t))
	must(t, err)
	up := func(m *postgres.Schema) error { _, err := m.Up(t.Context(), 0, store.Grants{}); return err }
	down := func(m *postgres.Schema) error { _, err := m.Down(t.Context(), 0, false); return err }
	clear := func(*postgres.Schema) error {
		run(t, server.URL, "drop schema if exists "+schema+" cascade")
		return nil
	}
	for _, way := range []struct {
		name         string
		before, move func(*postgres.Schema) error
		step         int // down, which drops what up has made, is cut at every third
	}{{"up", clear, up, 1}, {"down", up, down, 3}} {
		cuts := 0
		for question := 1 + fifth*way.step; ; question += fifths * way.step {
			must(t, way.before(again))
			w.cutAt(question, question%2 == 0)
			told := way.move(first)
			if !w.cutAt(-1, false) {
				must(t, told)
				break
			}
			cuts++
			if told != nil && nixie.CodeOf(told) != nixie.CodeUnavailable {
				t.Errorf("%s cut at question %d: %v (%s)", way.name, question, told, nixie.CodeOf(told))
			}
			if err := way.move(again); err != nil {
				t.Fatalf("%s, after it was cut at question %d: %v", way.name, question, err)
			}
			list, err := again.Migrations(t.Context())
			must(t, err)
			for _, step := range list {
				if step.Applied != (way.name == "up") {
					t.Errorf("%s, cut at question %d and run again: migration %d is applied: %v", way.name, question, step.Version,
						step.Applied)
				}
			}
			if way.name == "up" && question%8 == 0 {
				valid(t, again)
			}
		}
		t.Logf("%s: cut at %d questions", way.name, cuts)
		if cuts == 0 {
			t.Errorf("%s: no question was cut", way.name)
		}
	}
	must(t, up(again))
	valid(t, again)
}

// TestMigrationsAlternate lets many migrate at once, on a server where a client
// writes: each migration is applied once, and none waits for ever, not even the
// index that waits for all who look.
func TestMigrationsAlternate(t *testing.T) {
	const clients = 8
	schema := freshSchema(t)
	history := growing(t)
	var applied sync.Map
	var all sync.WaitGroup
	for range clients {
		m, err := postgres.SchemaOf(server.URL, postgres.Options{Schema: schema}, history)
		must(t, err)
		all.Go(func() {
			done, err := m.Up(t.Context(), 0, store.Grants{})
			if err != nil {
				t.Error(err)
			}
			for _, step := range done {
				if _, twice := applied.LoadOrStore(step.Version, true); twice {
					t.Errorf("migration %d was applied twice", step.Version)
				}
			}
		})
	}
	all.Wait()
	m, err := postgres.SchemaOf(server.URL, postgres.Options{Schema: schema}, history)
	must(t, err)
	valid(t, m)
}

// TestMigrationWaitsForLocks holds a table that a migration needs for longer than
// it waits in one go: meanwhile others pass, and then it is applied.
func TestMigrationWaitsForLocks(t *testing.T) {
	schema := freshSchema(t)
	m, err := postgres.SchemaOf(server.URL, postgres.Options{Schema: schema}, growing(t))
	must(t, err)
	_, err = m.Up(t.Context(), ours(t), store.Grants{})
	must(t, err)
	reader, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, reader.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := reader.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "select from "+schema+".meta")
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := m.Up(t.Context(), ours(t)+1, store.Grants{})
		done <- err
	}()
	// It has given up waiting once when the server has counted a transaction undone.
	other, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, other.Close(context.WithoutCancel(t.Context()))) }()
	const waits = `select count(*) from pg_stat_activity where application_name = 'nixie migrate' and wait_event_type = 'Lock'
		and query like '%` + "note text%' and query like '%SCHEMA%'"
	count := func() (n int) {
		must(t, other.QueryRow(t.Context(), strings.ReplaceAll(waits, "SCHEMA", schema)).Scan(&n))
		return n
	}
	for waited := false; !waited || count() > 0; {
		waited = waited || count() > 0
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-done)
}

// TestDownSparesData says what down does where there are rows.
func TestDownSparesData(t *testing.T) {
	schema := freshSchema(t)
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, s.Close())
	m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: schema})
	must(t, err)
	_, err = m.Down(t.Context(), 0, false)
	if nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), schema+".message") ||
		!strings.Contains(err.Error(), "--lose-data") {
		t.Errorf("told %v", err)
	}
	valid(t, m)
	done, err := m.Down(t.Context(), 0, true)
	must(t, err)
	if n := ours(t); len(done) != n || done[n-1].Version != 1 {
		t.Errorf("undone: %v", done)
	}
	_, err = m.Validate(t.Context())
	if nixie.CodeOf(err) != nixie.CodeNotFound || !strings.Contains(err.Error(), "nixie migrate up --store '") {
		t.Errorf("told %v", err)
	}
}

// TestValidateNamesDifferences changes a schema in each way that an administrator may,
// and expects to be told.
func TestValidateNamesDifferences(t *testing.T) {
	schema := freshSchema(t)
	m, err := postgres.NewSchema(server.URL, postgres.Options{Schema: schema})
	must(t, err)
	_, err = m.Up(t.Context(), 0, store.Grants{})
	must(t, err)
	for _, c := range []struct{ change, rule, subject string }{
		{"drop table @.note", "table-missing", "note"},
		{"create table @.theirs (x int)", "table-unknown", "theirs"},
		{"alter table @.message set unlogged", "table-differs", "message"},
		{"alter table @.queue drop column lease", "column-missing", "queue.lease"},
		{"alter table @.queue add column colour text", "column-unknown", "queue.colour"},
		{"alter table @.queue alter column lease drop not null", "column-differs", "queue.lease"},
		{"alter table @.letter alter column note type varchar(10)", "column-differs", "letter.note"},
		{"alter table @.letter alter column note set default ''", "column-differs", "letter.note"},
		{"drop index @.letter_facet", "index-missing", "letter_facet"},
		{"create index mine on @.letter (died)", "index-unknown", "mine"},
		{"drop index @.letter_facet; create index letter_facet on @.letter (facet)", "index-differs", "letter_facet"},
		{"update pg_index set indisvalid = false where indexrelid = '@.letter_facet'::regclass", "index-differs", "letter_facet"},
		{"alter table @.queue drop constraint queue_name_key", "constraint-missing", "queue.queue_name_key"},
		{"alter table @.queue add check (age > 0)", "constraint-unknown", "queue.queue_age_check"},
		{"drop view @.nixie_outbox cascade", "view-missing", "nixie_outbox"},
		{"drop view @.nixie_outbox cascade; create view @.nixie_outbox as select 1 as x", "view-differs", "nixie_outbox"},
		{"drop sequence @.position cascade", "sequence-missing", "position"},
		{`create function @.f() returns trigger language plpgsql as 'begin return null; end'; create trigger theirs before delete on
			@.audit execute function @.f()`, "trigger-unknown", "audit.theirs"},
	} {
		t.Run(c.rule+" "+c.subject, func(t *testing.T) {
			run(t, server.URL, "drop schema "+schema+" cascade")
			_, err := m.Up(t.Context(), 0, store.Grants{})
			must(t, err)
			run(t, server.URL, strings.ReplaceAll(c.change, "@.", schema+"."))
			found, err := m.Validate(t.Context())
			must(t, err)
			if !slices.ContainsFunc(found, func(v store.Violation) bool { return v.Rule == c.rule && v.Subject == c.subject }) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestOtherVersions opens schemas that are older and newer than the program.
func TestOtherVersions(t *testing.T) {
	schema := freshSchema(t)
	opts := postgres.Options{Schema: schema}
	s, err := postgres.Open(t.Context(), server.URL, opts)
	must(t, err)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, s.Close())
	_, err = postgres.OpenOf(t.Context(), server.URL, opts, growing(t))
	if nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(),
		"has schema version 7, this program needs 9: run nixie migrate up --store '") {
		t.Errorf("an older schema: %v", err)
	}
	m, err := postgres.SchemaOf(server.URL, opts, growing(t))
	must(t, err)
	done, err := m.Up(t.Context(), 0, store.Grants{})
	must(t, err)
	if len(done) != 2 {
		t.Errorf("applied %v", done)
	}
	_, err = postgres.Open(t.Context(), server.URL, opts)
	if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(),
		"was made by another build (it has schema version 8, ours is 7): export it with that one (nixie dlq export) and import it") {
		t.Errorf("a newer schema: %v", err)
	}
	s, err = postgres.OpenOf(t.Context(), server.URL, opts, growing(t))
	must(t, err)
	sound(t, s)
	must(t, s.Close())
}
