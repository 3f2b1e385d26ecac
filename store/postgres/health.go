package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// durability lists what a commit's promise rests on, and what it has to be.
var durability = [...]struct{ name, want string }{{"fsync", "on"}, {"full_page_writes", "on"}, {"synchronous_commit", "on"}}

// Inspect is that of store.Features. A server does not say how much room its disk
// has: free is −1.
func (s *Store) Inspect(ctx context.Context) (store.Health, error) {
	h := store.Health{Place: s.place, KnownSchema: len(s.schema.list), Reserve: -1, Free: -1}
	err := s.view(ctx, func(t *tx) error {
		var end, latest int64
		t.clock()
		t.read(func(r row) error { return r.Scan(&h.Engine, &h.Size) }, `select 'PostgreSQL ' || current_setting('server_version'),
			coalesce((select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind in ('r', 'S')), 0)::bigint`, s.opts.Schema)
		t.read(func(r row) error { return r.Scan(&h.Schema) }, "select coalesce(max(version), 0) from @.migration")
		for _, d := range durability {
			t.read(func(r row) error {
				set := store.Setting{Name: d.name, Want: d.want}
				err := r.Scan(&set.Value)
				h.Durability = append(h.Durability, set)
				return err
			}, "select current_setting($1)", d.name)
		}
		t.number(&latest, `select greatest(coalesce((select max(l.died) from @.queue q cross join lateral (select died from @.letter where queue = q.n order by died desc limit 1) l), 0), coalesce((select max(at) from @.audit), 0), coalesce((select max(enqueued) from @.message), 0))`)
		t.number(&end, "select coalesce(least((select min(until) from @.pending where until > 0), (select min(until) from @.batch)), 0)")
		t.read(func(r row) error {
			var o store.Owner
			var started time.Time
			err := r.Scan(&o.Name, &started, &o.Alive, &o.Leases)
			o.StartedAt = started.UTC()
			h.Owners = append(h.Owners, o)
			return err
		}, `select o.name, o.started, not `+deadOwner+`, (select count(*) from @.pending p where p.until > 0 and p.owner = o.n) + (select coalesce(sum(remains), 0) from @.batch b where b.owner = o.n)
			from @.owner o order by o.n`)
		err := t.send()
		h.Now, h.Latest, h.OldestLease = lifecycle.Moment(t.now), lifecycle.Moment(latest), lifecycle.Moment(end)
		return err
	})
	return h, err
}
