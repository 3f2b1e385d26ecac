package postgres

import "context"

// watcher implements Watcher of store.Features.
func (s *Store) watcher(ctx context.Context, name string) (state string, err error) {
	err = s.view(ctx, func(t *tx) error {
		t.read(func(r row) error { return r.Scan(&state) }, "select state from @.watcher where name = $1", name)
		return t.send()
	})
	return state, err
}

// keepWatcher implements KeepWatcher of store.Features.
func (s *Store) keepWatcher(ctx context.Context, name, state string) error {
	return s.write(ctx, func(t *tx) error {
		t.quiet = true
		t.run("insert into @.watcher (name, state) values ($1, $2) on conflict (name) do update set state = excluded.state", name, state)
		return t.send()
	})
}
