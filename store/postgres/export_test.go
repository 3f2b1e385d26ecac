package postgres

import "context"

// Crash ends the store as the death of its process would: no goodbye, and after a
// while others take its leases. The while is over at once.
func (s *Store) Crash() error {
	if !s.gate.close() {
		return nil
	}
	ctx := context.Background()
	if s.owner.stop != nil {
		s.owner.stop()
		<-s.owner.done
	}
	_, err := s.pool.Exec(ctx, s.named("update @.owner set seen = 'epoch' where n = $1"), s.owner.self())
	s.pool.Close()
	return err
}
