package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// durability lists the settings on which a commit relies, and the values that they must have.
var durability = [...]struct{ name, want string }{{"fsync", "on"}, {"full_page_writes", "on"}, {"synchronous_commit", "on"}}

// Ping is that of store.Features.
func (s *Store) Ping(ctx context.Context) (schema, known int, err error) {
	err = s.view(ctx, func(t *tx) error {
		t.read(func(r row) error { return r.Scan(&schema) }, readSchemaVersion)
		return t.send()
	})
	return schema, len(s.schema.list), err
}

const readSchemaVersion = "select coalesce(max(version), 0) from @.migration"

// Inspect is that of store.Features. A server does not tell how much room its disk has: free is −1.
func (s *Store) Inspect(ctx context.Context) (store.Health, error) {
	h := store.Health{Endpoint: s.address, KnownSchema: len(s.schema.list), Reserve: -1, Free: -1}
	err := s.view(ctx, func(t *tx) error {
		var end, latest int64
		t.clock()
		t.read(func(r row) error { return r.Scan(&h.Engine, &h.Size) }, "read_health.sql", s.opts.Schema)
		t.read(func(r row) error { return r.Scan(&h.Schema) }, readSchemaVersion)
		for _, d := range durability {
			t.read(func(r row) error {
				set := store.Setting{Name: d.name, Want: d.want}
				err := r.Scan(&set.Value)
				h.Durability = append(h.Durability, set)
				return err
			}, "select current_setting($1)", d.name)
		}
		t.number(&latest, "latest_moment.sql")
		t.number(&end, "oldest_lease.sql")
		t.read(func(r row) error {
			var o store.Owner
			var started time.Time
			err := r.Scan(&o.Name, &started, &o.Alive, &o.Leases)
			o.StartedAt = started.UTC()
			h.Owners = append(h.Owners, o)
			return err
		}, "list_owners.sql")
		err := t.send()
		h.Now, h.Latest, h.OldestLease = lifecycle.Moment(t.now), lifecycle.Moment(latest), lifecycle.Moment(end)
		return err
	})
	return h, err
}
