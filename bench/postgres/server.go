package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// given names the variable with the URL of a server to measure instead of one of our own.
const given = "NIXIE_BENCH_POSTGRES"

// settings configures our own server: acknowledged writes are durable, and the rest fits the work
// rather than the smallest machine.
var settings = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on",
	"shared_buffers=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min", "max_connections=200",
}

// server is a PostgreSQL on which each measurement gets a database of its own.
type server struct {
	own        *testservers.Postgres // nil: the server is given
	url        *url.URL
	admin      *pgx.Conn
	postmaster int // 0: on another machine
	facts      []string
	databases  int
}

func open(ctx context.Context, folder string) (_ match.Host, err error) {
	s := &server{}
	address := os.Getenv(given)
	if address == "" {
		if s.own, err = testservers.MakePostgres(ctx, folder, settings...); err != nil {
			return nil, err
		}
		address = s.own.URL
	}
	if err := s.connect(ctx, address); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *server) connect(ctx context.Context, address string) (err error) {
	if s.url, err = url.Parse(address); err != nil {
		return fmt.Errorf("%s: give a URL: %w", given, err)
	}
	if s.admin, err = pgx.Connect(ctx, address); err != nil {
		return err
	}
	s.postmaster = contest.ParentOf(s.admin.PgConn().PID())
	var text string
	err = s.admin.QueryRow(ctx,
		`select 'PostgreSQL ' || current_setting('server_version') || ': '
		|| string_agg(name || ' ' || current_setting(name), ', ' order by name)
		from pg_settings where name = any(array['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers',
		'max_wal_size', 'checkpoint_timeout', 'autovacuum'])`).Scan(&text)
	s.facts = []string{text + "; the same for all."}
	if s.postmaster == 0 {
		s.facts = append(s.facts, "The server is on another machine: its processor time is not known.")
	}
	return err
}

// Facts implements match.Host.
func (s *server) Facts() []string { return s.facts }

// Workspace implements match.Host.
func (s *server) Workspace(ctx context.Context, scenario contest.Scenario) (match.Workspace, error) {
	s.databases++
	name := fmt.Sprintf("nixie_bench_%d_%d", os.Getpid(), s.databases)
	if _, err := s.admin.Exec(ctx, "create database "+name); err != nil {
		return nil, err
	}
	at := *s.url
	at.Path = "/" + name
	return &database{server: s, name: name, setup: contest.Setup{Scenario: scenario, URL: at.String(), Postmaster: s.postmaster}}, nil
}

// Close implements match.Host.
func (s *server) Close() (err error) {
	if s.admin != nil {
		err = s.admin.Close(context.Background())
	}
	if s.own != nil {
		err = errors.Join(err, s.own.Stop())
	}
	return err
}

// database is the database of one measurement.
type database struct {
	server *server
	name   string
	setup  contest.Setup
	begun  bool
	wal    int64 // where the server's log was
}

// Setup implements match.Workspace.
func (d *database) Setup() contest.Setup { return d.setup }

// Begin implements match.Workspace. It vacuums the burden, makes statistics and writes all pages,
// so that each measurement begins in the same state. It does not vacuum the messages of a drain,
// because messages that do not wait long are not vacuumed either.
func (d *database) Begin(ctx context.Context) error {
	prepare := "vacuum (analyze)"
	if d.begun {
		prepare = "analyze"
	}
	d.begun = true
	if err := d.in(ctx, prepare); err != nil {
		return err
	}
	if _, err := d.server.admin.Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	return d.server.admin.QueryRow(ctx, position).Scan(&d.wal)
}

const position = "select (pg_current_wal_insert_lsn() - '0/0')::int8"

// End implements match.Workspace.
func (d *database) End(ctx context.Context, r *contest.Result) error {
	var now int64
	if err := d.server.admin.QueryRow(ctx, position).Scan(&now); err != nil {
		return err
	}
	r.WAL += now - d.wal
	return d.in(ctx,
		`select coalesce(sum(pg_table_size(c.oid)), 0) + coalesce(sum(pg_indexes_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0),
		coalesce((select sum(n_dead_tup) from pg_stat_user_tables), 0)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`, &r.File, &r.Indexes, &r.DeadRows)
}

// in runs a query in the database itself.
func (d *database) in(ctx context.Context, query string, into ...any) error {
	conn, err := pgx.Connect(ctx, d.setup.URL)
	if err != nil {
		return err
	}
	if len(into) == 0 {
		_, err = conn.Exec(ctx, query)
	} else {
		err = conn.QueryRow(ctx, query).Scan(into...)
	}
	return errors.Join(err, conn.Close(ctx))
}

// Remove implements match.Workspace.
func (d *database) Remove(ctx context.Context) error {
	_, err := d.server.admin.Exec(ctx, "drop database "+d.name+" with (force)")
	return err
}
