package sqlite

import (
	"context"
	"os"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Ping implements Ping of store.Features.
func (s *Store) Ping(ctx context.Context) (schema, known int, err error) {
	if err := s.files.check(); err != nil {
		return 0, schemaVersion, err
	}
	err = s.read(ctx, func(c conn) error {
		n, err := c.number("pragma user_version")
		schema = int(n)
		return err
	})
	return schema, schemaVersion, err
}

// Inspect implements Inspect of store.Features.
func (s *Store) Inspect(ctx context.Context) (store.Health, error) {
	h := store.Health{Endpoint: s.Name(), KnownSchema: schemaVersion, Reserve: s.opts.Reserve}
	now := s.look()
	h.Now, h.Ahead = lifecycle.Moment(now.wall), time.Duration(now.lead())
	if h.Ahead > 0 {
		h.Caught = lifecycle.Moment(now.caught())
	}
	if err := s.files.check(); err != nil {
		return h, err
	}
	for _, file := range [...]string{s.path, s.path + "-wal"} {
		if info, err := os.Stat(file); err == nil {
			h.Size += info.Size()
		}
	}
	var err error
	if h.Free, err = freeBytes(s.space.folder); err != nil {
		return h, err
	}
	err = s.read(ctx, func(c conn) error {
		if err := inspectEngine(c, &h); err != nil {
			return err
		}
		latest, err := c.number(sqlText("latest_moment"))
		if err != nil {
			return err
		}
		h.Latest = now.shown(latest)
		end, err := c.number(sqlText("first_lease_end"))
		if err != nil {
			return err
		}
		h.OldestLease = now.shown(end)
		return s.inspectOwners(c, &h)
	})
	return h, err
}

func inspectEngine(c conn, h *store.Health) error {
	schema, err := c.number("pragma user_version")
	if err != nil {
		return err
	}
	h.Schema = int(schema)
	if err := c.each("select sqlite_version()", func(row rows) error {
		h.Engine = "SQLite " + row.ColumnText(0)
		return nil
	}); err != nil {
		return err
	}
	// A commit is durable because of these settings.
	for _, d := range [...]struct{ name, query, want string }{
		{"journal_mode", "pragma journal_mode", "wal"},
		{"synchronous", sqlText("synchronous"), "full"},
	} {
		if err := c.each(d.query, func(row rows) error {
			h.Durability = append(h.Durability, store.Setting{Name: d.name, Value: row.ColumnText(0), Want: d.want})
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) inspectOwners(c conn, h *store.Health) error {
	dead, err := s.deadOwners(c)
	if err != nil {
		return err
	}
	gone := map[int64]bool{}
	for _, o := range dead {
		gone[o.n] = true
	}
	return c.each(sqlText("owners"), func(row rows) error {
		h.Owners = append(h.Owners, store.Owner{
			Name: row.ColumnText(1), StartedAt: lifecycle.Moment(row.ColumnInt64(2)), Alive: !gone[row.ColumnInt64(0)],
			Leases: row.ColumnInt64(3),
		})
		return nil
	})
}

// EngineVersion returns the version of SQLite in this program.
func EngineVersion() string { return lib.SQLITE_VERSION }
