package storetest

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// manyClauses have calls about many messages at once. A store may write those together. Each part
// still gets the answer that it would get alone.
func manyClauses() []clause {
	return []clause{
		{"MembersOfAClaim", manyMembers},
		{"Retried", manyRetried},
		{"Late", manyLate},
		{"LateFinisherOfWhatWentOn", lateFinisherOfWhatWentOn},
	}
}

// many is more than a store writes with one statement.
const many = 100

// settleMany settles deliveries by one verb in one call, in another order than they came. It
// expects lease-lost for those in lost and success for the others.
func (b *fixture) settleMany(ds []*nixie.Delivery, verb nixie.Verb, lost ...int) {
	b.Helper()
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		sts[i] = nixie.Settlement{Delivery: d, Verb: verb}
		if verb == nixie.Retry {
			sts[i].Failure = b.failure(d, "no")
		}
	}
	slices.Reverse(sts)
	errs := b.st.Settle(b.ctx, sts)
	slices.Reverse(errs)
	for i, err := range errs {
		if slices.Contains(lost, i) {
			b.code(err, nixie.CodeLeaseLost)
		} else {
			b.ok(err)
		}
	}
}

// all returns 0, 1 … n−1.
func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func manyMembers(b *fixture) {
	b.fill(2*many, 2*many)
	ds := b.claim(2 * many)
	b.ok(b.settle(nixie.Settlement{Delivery: ds[40], Verb: nixie.Complete}))
	b.ok(b.settle(nixie.Settlement{Delivery: ds[50], Verb: nixie.Retry, Delay: time.Hour, Failure: b.failure(ds[50], "no")}))
	b.settleMany(ds[:many], nixie.Complete, 40, 50)
	same(b, "succeeded", b.info().Succeeded, many-1)
	b.unchanged(func() { b.settleMany(ds[:many], nixie.Complete, all(many)...) })
	b.settleMany(append(ds[many:len(ds):len(ds)], ds[many]), nixie.Complete, 0) // the first of two settlements of one message counts
	same(b, "succeeded in the end", b.info().Succeeded, 2*many-1)
}

func manyRetried(b *fixture) {
	b.fill(many, many)
	first := b.claim(many)
	b.settleMany(first, nixie.Retry)
	second := b.claim(2 * many)
	same(b, "claimed again", len(second), many)
	for _, d := range second {
		same(b, "attempt", d.Attempts, 2)
		same(b, "lease", d.Lease.Number, 2)
		same(b, "reason", d.LastReason, nixie.ReasonHandler)
	}
	b.unchanged(func() { b.settleMany(first, nixie.Complete, all(many)...) })
	right := second[7]
	wrong := lease.Renewal(right, nil)
	wrong.Lease.Number++
	second[7] = wrong
	b.settleMany(second, nixie.Complete, 7)
	b.state(right.ID, nixie.Leased)
	b.ok(b.settle(nixie.Settlement{Delivery: right, Verb: nixie.Complete}))
	for _, d := range second {
		same(b, "attempts of what succeeded", b.record(d.ID).Attempts, 2)
	}
	same(b, "succeeded", b.info().Succeeded, many)
}

func manyLate(b *fixture) {
	b.fill(2*many, 2*many)
	again := b.claim(many)
	b.settleMany(again, nixie.Retry)
	again = nil
	var members []*nixie.Delivery
	for _, d := range b.claim(2 * many) {
		if d.Attempts == 2 {
			again = append(again, d)
		} else {
			members = append(members, d)
		}
	}
	same(b, "claimed again", len(again), many)
	same(b, "claimed for the first time", len(members), many)
	b.clock.Advance(time.Hour)
	b.unchanged(func() {
		b.settleMany(members, nixie.Complete, all(many)...)
		b.settleMany(again, nixie.Complete, all(many)...)
	})
}

// lateFinisherOfWhatWentOn settles a member of a claim that has moved on, to a later generation or
// to another queue. The store does not take it for another member, which would be lost then.
func lateFinisherOfWhatWentOn(b *fixture) {
	redriven := func(d *nixie.Delivery) {
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	}
	moved := func(d *nixie.Delivery) {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
		c := change(store.Move)
		c.Queue = "other"
		b.ok(b.change(d.ID, c))
	}
	for _, goOn := range []func(*nixie.Delivery){redriven, moved} {
		for _, receipt := range []bool{true, false} {
			b.fill(2, 2)
			ds := b.claim(2)
			same(b, "claimed", len(ds), 2)
			goOn(ds[0])
			if !receipt {
				ds[0].Lease.Handle, ds[1].Lease.Handle = nixie.LeaseHandle{}, nixie.LeaseHandle{}
			}
			for _, verb := range []nixie.Verb{nixie.Complete, nixie.Retry} {
				b.code(b.settle(nixie.Settlement{Delivery: ds[0], Verb: verb}), nixie.CodeLeaseLost)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}))
			b.empty()
		}
	}
}
