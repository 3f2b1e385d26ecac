package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Once reports whether a key is new to a scope, and remembers it: true the first time and false
// after that. [Store.Prune] forgets the key at an age of [store.InboxRetention], [Store.PruneInbox]
// sooner. If the transaction is rolled back, the key was never there. So work in the transaction
// that depends on true happens once, however often its message is delivered in that time.
//
// Scope says whose keys they are, a consumer's name for example. Both are 1 to 255 bytes, see
// [nixie.CheckName].
func (x *Tx) Once(ctx context.Context, scope, key string) (first bool, err error) {
	for _, f := range [...]struct{ what, value string }{{"inbox scope", scope}, {"inbox key", key}} {
		if f.value == "" {
			return false, nixie.Errorf(nixie.CodeInvalid, "%s is empty: name what is to happen once", f.what)
		}
		if err := nixie.CheckName(f.what, f.value); err != nil {
			return false, err
		}
	}
	err = x.do(ctx, func(t *tx) error {
		added, err := t.change("insert into inbox (scope, key, at) values (?, ?, ?) on conflict do nothing", scope, key, t.now)
		first = added == 1
		return err
	})
	return first && err == nil, err
}

// prunePart limits the keys that one transaction forgets, so that other calls run in between.
const prunePart = 10_000

// PruneInbox forgets the keys that [Tx.Once] got at least olderThan ago, and returns their number.
// Use it to forget keys sooner than [Store.Prune] does. olderThan has to be longer than a message
// can come again: by retries, by a redrive, and by repeated deliveries of a broker.
func (s *Store) PruneInbox(ctx context.Context, olderThan time.Duration) (pruned int64, err error) {
	if olderThan < 0 {
		return 0, nixie.Errorf(nixie.CodeInvalid, "inbox age is %s: give one from 0", olderThan)
	}
	for part := prunePart; part == prunePart; pruned += int64(part) {
		err := s.write(ctx, 0, func(t *tx) (err error) {
			part, err = t.forget(t.now-int64(olderThan), prunePart)
			return err
		})
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// forget deletes up to limit keys that Once got at the moment cutoff or before.
func (t *tx) forget(cutoff int64, limit int) (int, error) {
	return t.change("delete from inbox where (scope, key) in (select scope, key from inbox where at <= ? limit ?)", cutoff, limit)
}

// inbox prunes keys. A dry run counts them, and skips those that it has counted.
func (p *pruner) inbox() (over bool, err error) {
	n := 0
	if p.t != nil {
		n, err = p.t.forget(p.cutoff(store.InboxRetention), p.left)
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
