package postgres

import (
	"context"
)

// Ranges count in transaction IDs, and another server counts from another number. So when a store
// was moved to another server, by a dump or by logical replication, every plain message gets a row
// before anything is claimed.

// arrive checks whether the store was moved here from another server.
func (s *Store) arrive(ctx context.Context) error {
	var from, here string
	err := s.own.QueryRow(ctx, s.named("server_of_store.sql")).Scan(&from, &here)
	if codeOf(err) == errPrivilege {
		return nil // this role may not ask which server it is
	}
	s.cluster = here
	if err != nil || from == here {
		return err
	}
	return s.transact(ctx, s.own, func(t *tx) error {
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

// leaveRanges ends all leases by range and gives every plain message a row: one that waits, or one
// that says that it succeeded. New ranges begin at the transactions of this server. Tokens are kept
// as if a claim had read them; unresolved ones are given again.
func (t *tx) leaveRanges() {
	t.run("lock table @.message, @.cursor, @.batch, @.success_range, @.token, @.ready, @.pending, @.log in share row exclusive mode")
	t.run("leave_ranges.sql", t.now)
	t.run("insert into @.log (pos, queue, state, ended, received) select pos, queue, 2, ended, received from @.success")
	t.run("delete from @.batch where positions is null")
	t.run("delete from @.success_range")
	t.run("update @.message set by_range = false where by_range")
	t.run("keep_tokens.sql")
	t.run("renew_unresolved.sql")
	t.run("restart_cursors.sql")
}
