package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Ranges count in transactions, and another server counts from another number. So what
// was moved there, by a dump or by logical replication, gives every plain message a
// row of its own before anything is handed out.

// cluster is the server that the numbers of transactions are from, and the server that
// this is.
const cluster = "select coalesce((select value from @.meta where name = 'cluster'), ''), (select system_identifier::text from pg_control_system())"

// arrive looks whether the store was moved here from another server.
func (s *Store) arrive(ctx context.Context) error {
	var from, here string
	err := s.pool.QueryRow(ctx, s.named(cluster)).Scan(&from, &here)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == errPrivilege {
		return nil // nobody may ask here who the server is
	}
	if err != nil || from == here {
		return err
	}
	return s.transact(ctx, func(t *tx) error {
		t.run("select pg_advisory_xact_lock(hashtext($1), 0)", "nixie "+s.opts.Schema)
		t.read(func(r row) error { return r.Scan(&from, &here) }, cluster)
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
	t.run(`insert into @.pending (pos, queue, state, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, abandoned, rank, may_pass, gap)
		select p.pos, p.queue, 0, 0, $1, p.pos, 0, 1, 1, 1, 0, 1, 0, 0, p.claimed, p.claimed, `+abandoner+`, 0, false, false from @.member p where p.lane is null
		union all
		select f.pos, f.queue, 0, 0, f.enqueued, f.pos, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, null, 0, false, false from @.fresh f`, t.now)
	t.run("insert into @.log (pos, queue, state, ended, received) select pos, queue, 2, ended, received from @.success")
	t.run("delete from @.batch where places is null")
	t.run("delete from @.span")
	t.run("update @.message set apart = true where not apart")
	t.run("insert into @.ready (queue, due, pos, stream) select t.queue, m.enqueued, m.pos, t.stream from @.turned t join @.message m on m.pos = t.pos on conflict do nothing")
	t.run(`with gone as (delete from @.turn returning *) insert into @.turn (queue, streams, places) select g.queue, array_agg(u.stream), array_agg(u.place)
		from gone g cross join lateral unnest(g.streams, g.places) u (stream, place) cross join lateral @.found(u.stream, -u.place) f where u.place < 0 and f.pos is null group by g.queue`)
	t.run("update @.cursor set tx = pg_current_xact_id(), pos = -1, late = '{}', done = '{}', low = 0")
}
