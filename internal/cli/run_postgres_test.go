//go:build linux

package cli_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// hall is a server with roles and databases for what goes wrong with them.
type hall struct {
	*testservers.Postgres
	t      *testing.T
	folder string
	made   atomic.Int64
}

func newHall(t *testing.T) *hall {
	server := testservers.OwnPostgres(t)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{Postgres: server, t: t, folder: u.Query().Get("host")}
	h.sql("postgres", "create role boss login; create role app login; create role few login connection limit 0; create role locked "+
		"login password 'right'")
	h.sql("postgres", "copy (values ('local all locked scram-sha-256'), ('local all all trust'), ('local replication all trust')) "+
		"to '"+h.folder+"/data/pg_hba.conf'; select pg_reload_conf()")
	return h
}

// url is that of a database as a role sees it.
func (h *hall) url(role, database string) string {
	return fmt.Sprintf("postgres://%s:%s@/%s?host=%s", role, secret, database, h.folder)
}

// sql runs a script as a role that may do everything.
func (h *hall) sql(database, text string) {
	h.t.Helper()
	c, err := pgx.Connect(context.Background(), strings.Replace(h.URL, "/postgres?", "/"+database+"?", 1))
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close(context.Background()) //nolint:errcheck // nothing is left to be done on it
	if err := c.PgConn().Exec(context.Background(), text).Close(); err != nil {
		h.t.Fatalf("%s: %v", text, err)
	}
}

// database makes a database of boss.
func (h *hall) database() string {
	name := fmt.Sprintf("d%d", h.made.Add(1))
	h.sql("postgres", "create database "+name+" owner boss")
	return name
}

// at runs a job on a store.
func at(url string, more ...string) func(*workspace) []string {
	return listed("a.txt", "a\n", append([]string{"--store", url}, append(more, "--", "true")...)...)
}

// on runs a job as a role on a database that was made and then changed.
func (h *hall) on(role, change string) func(*workspace) []string {
	return func(d *workspace) []string {
		name := h.database()
		d.nixie(0, "migrate", "up", "--grant", "app", "--store", h.url("boss", name))
		h.sql(name, strings.ReplaceAll(change, "DATABASE", name))
		return at(h.url(role, name))(d)
	}
}

func (h *hall) rows() []badInput {
	nowhere := "postgres://u:" + secret + "@"
	return []badInput{
		{"port that is no number", at(nowhere + "h:port/d"), 2,
			"store is no PostgreSQL URL: give one like postgres://user@host:5432/database, and characters like / : @ ? # % in a " +
				"password as %2F", "", nil},
		{"password with a slash", at("postgres://u:/" + secret + "@h/d"), 2, "store is no PostgreSQL URL: ", "", nil},
		{"password with a number and a slash", at("postgres://u:1/" + secret + "@h/d"), 2, "store is no PostgreSQL URL: ", "", nil},
		{"password with a question mark", at("postgres://u:?" + secret + "@h/d"), 2, "store is no PostgreSQL URL: ", "", nil},
		{"password with a number sign", at("postgres://u:#" + secret + "@h/d"), 2, "store is no PostgreSQL URL: ", "", nil},
		{"parameter of ours, misspelt", at(h.url("boss", "d") + "&nixie_shema=x"), 2,
			"has the parameter nixie_shema: known are nixie_schema and nixie_listen", "", nil},
		{"unknown parameter", at(h.url("boss", "postgres") + "&colour=red"), 2, "its URL has a parameter that PostgreSQL does not know: ",
			"", nil},
		{"bad name of a schema", at(h.url("boss", "d") + "&nixie_schema=A-b"), 2,
			`schema "A-b": use small letters, digits and _, at most 63`, "", nil},
		{"unknown host", at(nowhere + "no-such-host.invalid/d"), 1,
			"store postgres://no-such-host.invalid/d cannot be reached: check host and port, and that the server runs: lookup ", "", nil},
		{"no server listens", at(nowhere + "127.0.0.1:1/d"), 1,
			"store postgres://127.0.0.1:1/d cannot be reached: check host and port, and that the server runs: dial tcp", "", nil},
		{"unknown database", at(h.url("boss", "none")), 1,
			`there is no such database: create it, or name another one: FATAL: database "none"`, "", nil},
		{"unknown role", at(h.url("stranger", "postgres")), 4,
			`does not let role "stranger" in: check its name and password, and pg_hba.conf of the server: `, "", nil},
		{"wrong password", at(h.url("locked", "postgres")), 4, `does not let role "locked" in: check its name and password, `, "", nil},
		{"no connection left", at(h.url("few", "postgres")), 1,
			"has no connection left: lower pool_max_conns in the URLs of its users, or raise max_connections of the server: ", "", nil},
		{"no schema, and no right to make one", func(d *workspace) []string { return at(h.url("app", h.database()))(d) }, 4,
			`and role "app" may not make it: as "boss", or another that may, run nixie migrate up --grant app --store 'postgres://boss@/d`,
			"", nil},
		{"newer schema", h.on("app", "insert into nixie.migration (version, name) values (9, 'x')"), 2,
			"was made by another build (it has schema version 9, ours is 7): export it with that one", "", nil},
		{"schema of another program", h.on("boss", "drop schema nixie cascade; create schema nixie; create table nixie.migration (id int)"),
			2, "is another program's: name another one by nixie_schema in the URL", "", nil},
		{"tables without a book", h.on("boss", "delete from nixie.migration"), 2, "has tables that no migration of ours is noted for: ", "",
			nil},
		{"a table is gone", h.on("boss", "drop table nixie.dedupe"), 1,
			"has lost its schema nixie, or a part of it: run nixie migrate validate: ", "", nil},
		{"no privileges in the schema", h.on("app", "revoke usage on schema nixie from app"), 4,
			`role "app" may not do that: as the owner of the schema, run nixie migrate up --grant app: `, "", nil},
		{"no privilege on a table", h.on("app", "revoke insert on nixie.message from app"), 4,
			`role "app" may not do that: as the owner of the schema, run nixie migrate up --grant app: `, "", nil},
		{"read-only database", h.on("app", "alter database DATABASE set default_transaction_read_only = on"), 1,
			"is read-only, a replica perhaps: name the server that is written to: ", "", nil},
		{"replica", func(d *workspace) []string {
			name := h.database()
			d.nixie(0, "migrate", "up", "--store", h.url("boss", name))
			replica, err := h.Standby()
			if err != nil {
				d.t.Fatal(err)
			}
			replica = strings.Replace(replica, "/postgres?", "/"+name+"?", 1)
			d.nixie(0, "dlq", "list", "--store", replica) // looking is fine
			return at(replica)(d)
		}, 1, "is read-only, a replica perhaps: name the server that is written to: ", "", nil},
	}
}

// TestShow6BadPostgres runs what goes wrong with a server, and prints the table.
func TestShow6BadPostgres(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	t.Run("rows", func(t *testing.T) { play(t, h.rows()) }) // it ends before the server does
}

// TestRunGoesOnWhenTheServerIsBack stops the server under a job and starts it again
// once the job has said twice that it cannot be reached: it goes on by itself, and
// nothing is lost or done twice.
func TestRunGoesOnWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	d := newWorkspace(t)
	store := h.url("boss", h.database())
	var list strings.Builder
	for i := range 30 {
		fmt.Fprintln(&list, i)
	}
	d.write("a.txt", list.String())
	d.write("work", "#!/bin/sh\necho $1 >> ledger\n[ $1 != 5 ] || until [ -e on ]; do sleep 0.01; done\n")
	cmd := d.running(6, "run", "a.txt", "-p", "2", "--store", store, "--", "./work", "{line}")
	if err := h.Halt(); err != nil {
		t.Fatal(err)
	}
	d.write("on", "")
	if !within(30*time.Second, func() bool { return strings.Count(d.read("err"), "; trying again\n") >= 2 }) {
		t.Errorf("it does not try again: %s", d.read("err"))
	}
	if err := h.Resume(); err != nil {
		t.Fatal(err)
	}
	code := ended(t, cmd)
	if said := d.read("out") + d.read("err"); code != 0 || strings.Contains(said, secret) {
		t.Errorf("exit code %d: %s", code, said)
	}
	for line, n := range times(d.ledger("ledger")) {
		if n != 1 {
			t.Errorf("item %s was done %d times", line, n)
		}
	}
	if n := len(d.ledger("ledger")); n != 30 {
		t.Errorf("%d items were done", n)
	}
	d.nixie(0, "verify", "--store", store)
}

// TestNextCommandsHideThePassword looks at what is proposed to be typed next.
func TestNextCommandsHideThePassword(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	name := h.database()
	for _, store := range []string{h.url("boss", name), "postgres://boss@/" + name + "?password=" + secret + "&host=" + h.folder} {
		d := newWorkspace(t)
		d.write("a.txt", "a\n")
		r := d.nixie(5, "run", "a.txt", "--job", fmt.Sprint("j", len(store)), "--max-attempts", "1", "--store", store, "--", "false")
		if said := r.out + r.err; strings.Contains(said, secret) ||
			!strings.Contains(said, "nixie dlq analyze --store '"+strings.Replace(store, secret, "***", 1)+"'") {
			t.Error(said)
		}
	}
}

// TestRunScriptsOnPostgres runs the stories of nixie run on a server: what it prints
// is the same.
func TestRunScriptsOnPostgres(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	t.Run("scripts", func(t *testing.T) { // they end before the server does
		runScripts(t, "run", "postgres", func(*testscript.Env) string { return h.url("boss", h.database()) })
	})
}
