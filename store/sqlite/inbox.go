package sqlite

import "github.com/nixie-go/nixie/store"

// Remember implements engine.Tx.
func (v *verb) Remember(scope, key string) (first bool, err error) {
	added, err := v.change("insert into inbox (scope, key, at) values (?, ?, ?) on conflict do nothing", scope, key, v.now)
	return added == 1, err
}

// Forget implements engine.Tx.
func (v *verb) Forget(until int64, most int) (int, error) {
	return v.change("delete from inbox where (scope, key) in (select scope, key from inbox where at <= ? limit ?)", until, most)
}

// inbox prunes keys. A dry run counts them, and skips those that it has counted.
func (p *pruner) inbox() (over bool, err error) {
	n := 0
	if p.t != nil {
		n, err = p.t.verb().Forget(p.cutoff(store.InboxRetention), p.left)
	} else {
		err = p.each("select count(*) from (select 1 from inbox where at <= ? limit ? offset ?)", func(row rows) error {
			n = row.ColumnInt(0)
			return nil
		}, p.cutoff(store.InboxRetention), p.left, p.at.after)
		p.at.after += int64(n)
	}
	over = n < p.left
	p.left -= n
	p.done.Keys += int64(n)
	return over, err
}
