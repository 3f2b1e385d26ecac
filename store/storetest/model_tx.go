package storetest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
)

// transact makes one to three calls in a transaction of the store, and commits or rolls back. The
// reference gets the calls of a commit only.
func (m *machine) transact(r *rapid.T) {
	p := m.process(r)
	tx, err := m.beginTx(m.ctx, p.sut)
	if err != nil {
		m.Fatal(err)
	}
	commits := rapid.Bool().Draw(r, "commits")
	usable := slices.DeleteFunc(slices.Clone(m.pairs), func(l pair) bool { return slices.Contains(m.vanished, l.by) })
	for range rapid.IntRange(1, 3).Draw(r, "calls") {
		if len(usable) == 0 || rapid.Bool().Draw(r, "enqueues") {
			ms := m.messages(r)
			if commits {
				m.enqueueTo(tx, p.ref, ms)
			} else if _, err := tx.Enqueue(m.ctx, ms...); err != nil {
				m.sameCode("enqueue to be rolled back", err, &nixie.DuplicateError{})
			}
			continue
		}
		l := rapid.SampledFrom(usable).Draw(r, "pair")
		l.sut.Tracking.Then = nil
		if rapid.Bool().Draw(r, "followed") {
			l.sut.Tracking.Then = m.follows(r)
		}
		got := tx.Complete(m.ctx, l.sut)
		if commits {
			want := nixie.Settlement{Delivery: l.ref, Verb: nixie.Complete, Then: l.sut.Tracking.Then}
			m.sameCode("complete", got, p.ref.Settle(m.ctx, []nixie.Settlement{want})[0])
		}
	}
	end := tx.Rollback
	if commits {
		end = tx.Commit
	}
	m.sameCode("end of the transaction", end(), nil)
	m.followed()
}
