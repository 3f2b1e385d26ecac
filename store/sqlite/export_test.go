package sqlite

// Crash drops everything as kill -9 would: leases stay, the kernel lock goes.
func (s *Store) Crash() {
	s.gate.close()
	_ = s.shut()
}
