package memory

import "context"

// watcher implements Watcher of store.Features.
func (s *Store) watcher(ctx context.Context, name string) (string, error) {
	if _, err := s.enter(ctx); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	return s.watchers[name], nil
}

// keepWatcher implements KeepWatcher of store.Features.
func (s *Store) keepWatcher(ctx context.Context, name, state string) error {
	if _, err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.watchers[name] = state
	return nil
}
