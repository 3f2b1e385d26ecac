package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

func with(url, parameters string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameters
	}
	return url + "?" + parameters
}

// open opens a store that is closed in the end, in a schema that others use after.
func open(t *testing.T, url string, opts postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// lend names a schema for one test.
func lend(t *testing.T) string {
	t.Helper()
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	return schema
}

// TestConnectionsHaveLimits reads what a connection of ours may do at most. The URL
// has the last word.
func TestConnectionsHaveLimits(t *testing.T) {
	schema := lend(t)
	for _, c := range []struct{ url, lock, statement, idle string }{
		{server.URL, "30s", "5min", "1min"},
		{with(server.URL, "lock_timeout=7s&statement_timeout=8s&idle_in_transaction_session_timeout=9s"), "7s", "8s", "9s"},
	} {
		s := open(t, c.url, postgres.Options{Schema: schema})
		for name, want := range map[string]string{"lock_timeout": c.lock, "statement_timeout": c.statement,
			"idle_in_transaction_session_timeout": c.idle, "application_name": "nixie"} {
			if got, err := s.Setting(t.Context(), name); err != nil || got != want {
				t.Errorf("%s is %s, want %s (%v)", name, got, want, err)
			}
		}
	}
}

// TestLocksEndInTime holds what calls need: they give up when they said so, and
// nothing of them stays.
func TestLocksEndInTime(t *testing.T) {
	schema := lend(t)
	const wait = 50 * time.Millisecond
	s := open(t, server.URL, postgres.Options{Schema: schema, LockWait: wait})
	must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{}, "ann", ""))
	c, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := c.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "lock table "+schema+".message in access exclusive mode")
	must(t, err)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(), "others held what this call needs for more than 50ms") {
		t.Errorf("told %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	sound(t, s)
}

// TestStatementsEndInTime runs a statement that takes too long.
func TestStatementsEndInTime(t *testing.T) {
	s := open(t, server.URL, postgres.Options{Schema: lend(t)})
	err := s.Run(t.Context(), "set local statement_timeout = '50ms'", "select pg_sleep(600)")
	if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("told %v", err)
	}
	sound(t, s)
}

// TestIdleTransactionsEnd leaves a transaction alone until the server has ended it:
// what it had done is undone, and the next call has another connection.
func TestIdleTransactionsEnd(t *testing.T) {
	s := open(t, server.URL, postgres.Options{Schema: lend(t)})
	c, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	err = s.Leave(t.Context(), "set local idle_in_transaction_session_timeout = '50ms'", func(session int64) {
		for left := true; left; {
			must(t, c.QueryRow(t.Context(), "select count(*) > 0 from pg_stat_activity where pid = $1", session).Scan(&left))
		}
	})
	if nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("told %v (%s)", err, nixie.CodeOf(err))
	}
	sound(t, s)
}

// TestPoolInUse takes all connections of a process: a call waits for one, and says
// what was missing when it may not wait for longer.
func TestPoolInUse(t *testing.T) {
	s := open(t, with(server.URL, "pool_max_conns=1"), postgres.Options{Schema: lend(t)})
	must(t, s.Leave(t.Context(), "select 1", func(int64) {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer stop()
		_, err := s.Enqueue(ctx, nixie.Message{Queue: "q"})
		if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(),
			"all 1 connections of this process are in use: raise pool_max_conns in its URL") {
			t.Errorf("told %v", err)
		}
	}))
	// One is enough for everything.
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
	sound(t, s)
}
