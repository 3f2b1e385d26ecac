package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Ranges count in transactions, and another server counts from another number. So what
// was moved there, by a dump or by logical replication, gives every plain message a
// row of its own before anything is handed out.

// arrive looks whether the store was moved here from another server.
func (s *Store) arrive(ctx context.Context) error {
	var from, here string
	err := s.pool.QueryRow(ctx, s.named("server_of_store.sql")).Scan(&from, &here)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == errPrivilege {
		return nil // nobody may ask here who the server is
	}
	if err != nil || from == here {
		return err
	}
	return s.transact(ctx, func(t *tx) error {
		t.run("select pg_advisory_xact_lock(hashtext($1), 0)", "nixie "+s.opts.Schema)
		t.read(func(r row) error { return r.Scan(&from, &here) }, "server_of_store.sql")
		t.clock()
		if err := t.send(); err != nil || from == here {
			return err
		}
		if from != "" {
			t.leaveRanges()
		}
		t.run("insert into @.meta (name, value) values ('cluster', $1) on conflict (name) do update set value = excluded.value", here)
		return nil
	})
}

// leaveRanges ends all leases by range and lets every plain message wait in a row of
// its own, or have one that says that it succeeded. New ones begin at the transactions of
// this server. Turns that were given there are kept as if they had been read, and streams that
// were to be arranged still are.
func (t *tx) leaveRanges() {
	t.run("lock table @.message, @.cursor, @.batch, @.span, @.turn, @.ready, @.pending, @.log in share row exclusive mode")
	t.run("leave_ranges.sql", t.now)
	t.run("insert into @.log (pos, queue, state, ended, received) select pos, queue, 2, ended, received from @.success")
	t.run("delete from @.batch where places is null")
	t.run("delete from @.span")
	t.run("update @.message set apart = true where not apart")
	t.run("keep_tokens.sql")
	t.run("renew_unresolved.sql")
	t.run("restart_cursors.sql")
}
