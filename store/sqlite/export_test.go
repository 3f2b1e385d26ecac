package sqlite

// Crash drops everything as kill -9 would: leases stay, the kernel lock goes.
func (s *Store) Crash() {
	s.closing.Store(true)
	s.calls.Wait()
	_ = s.owner.release()
	close(s.writes)
	<-s.idle
	for range readers {
		_ = (<-s.readers).Close()
	}
}
