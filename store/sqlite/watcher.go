package sqlite

import "context"

// watcher implements Watcher of store.Features.
func (s *Store) watcher(ctx context.Context, name string) (state string, err error) {
	err = s.read(ctx, func(c conn) error {
		return c.each("select state from watcher where name = ?", func(row rows) error {
			state = row.ColumnText(0)
			return nil
		}, name)
	})
	return state, err
}

// keepWatcher implements KeepWatcher of store.Features.
func (s *Store) keepWatcher(ctx context.Context, name, state string) error {
	return s.write(ctx, len(state), func(t *tx) error {
		return t.run("insert into watcher (name, state) values (?, ?) on conflict (name) do update set state = excluded.state", name, state)
	})
}
