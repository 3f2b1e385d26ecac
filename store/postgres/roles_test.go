package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestRunnerCannot tries what the role that runs stores must not be able to do.
func TestRunnerCannot(t *testing.T) {
	schema := newSchema(t)
	grant(t, schema)
	defer dropSchema(t, schema)
	s, err := postgres.Open(t.Context(), asRunner(server.URL), postgres.Options{Schema: schema})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{Paused: true}, "ann", "because"))
	c, err := pgx.Connect(t.Context(), asRunner(server.URL))
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	for _, statement := range []string{
		"update @.audit set reason = 'another'",
		"delete from @.audit",
		"truncate @.audit",
		"select from @.audit for update",
		"insert into @.audit select * from @.audit on conflict (queue, number) do update set reason = 'another'",
		"merge into @.audit a using @.queue q on q.n = a.queue when matched then delete",
		"alter table @.audit disable trigger all",
		"alter table @.audit owner to nixie_runner",
		"drop table @.audit",
		"create rule r as on insert to @.audit do instead nothing",
		"create trigger r before insert on @.audit execute function suppress_redundant_updates_trigger()",
		"alter table @.message add column x int",
		"drop index @.message_id",
		"create table @.mine (x int)",
		"create or replace view @.current as select 1",
		"drop schema SCHEMA cascade",
		"truncate @.message",
		"insert into @.migration (version, name) values (2, 'mine')",
		"update @.migration set version = 2",
		"delete from @.migration",
		"select setval('@.position', 1)",
	} {
		_, err := c.Exec(t.Context(), strings.NewReplacer("@.", schema+".", "SCHEMA", schema).Replace(statement))
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" && !(strings.HasPrefix(statement, "merge") && pg.Code == "42601") {
			// Before PostgreSQL 15 there is no merge.
			t.Errorf("%s: %v", statement, err)
		}
	}
	// This is answered with a warning.
	_, err = c.Exec(t.Context(), "grant delete on "+schema+".audit to "+runner)
	must(t, err)
	var may bool
	must(t, c.QueryRow(t.Context(), "select has_table_privilege($1, 'update, delete, truncate')", schema+".audit").Scan(&may))
	if may {
		t.Error("the role gave itself the right to change the audit")
	}
}

// TestOwnerPrunesAudits prunes as both roles: entries of audits go only as that of
// the owner, and everything else goes either way.
func TestOwnerPrunesAudits(t *testing.T) {
	schema := newSchema(t)
	grant(t, schema)
	defer dropSchema(t, schema)
	now := time.Now()
	open := func(url string) *postgres.Store {
		s, err := postgres.Open(t.Context(), url, postgres.Options{Schema: schema, Clock: func() time.Time { return now }})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	s, owner := open(asRunner(server.URL)), open(server.URL)
	for _, paused := range []bool{true, false, true, false} {
		must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{Paused: paused}, "ann", "because"))
	}
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
	now = now.Add(365 * 24 * time.Hour)
	for _, c := range []struct {
		st   *postgres.Store
		want store.Pruned
	}{{s, store.Pruned{Messages: 1}}, {owner, store.Pruned{Entries: 3}}} {
		for _, dry := range []bool{true, false} {
			got, err := c.st.Prune(t.Context(), store.Pruning{DryRun: dry})
			must(t, err)
			if got != c.want {
				t.Errorf("pruned %+v, want %+v", got, c.want)
			}
		}
	}
	sound(t, s)
}
