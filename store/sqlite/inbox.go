package sqlite

// Remember implements engine.Tx.
func (v *verb) Remember(scope, key string) (first bool, err error) {
	added, err := v.change("insert into inbox (scope, key, at) values (?, ?, ?) on conflict do nothing", scope, key, v.now)
	return added == 1, err
}

// Forget implements engine.Tx.
func (v *verb) Forget(until int64, most int) (int, error) {
	return v.change("delete from inbox where (scope, key) in (select scope, key from inbox where at <= ? limit ?)", until, most)
}
