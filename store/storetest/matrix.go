package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// matrixRow is one row of the matrix of decisions: the state of M1, the change of M2 behind it, and
// what the contract says of M2. Released means that the lease was given back; marked means MayPass.
type matrixRow struct {
	order    nixie.Order
	m1       string
	m2       string
	claimed  bool   // M2 can be claimed
	gap      bool   // M2 has OrderGap
	ordering string // the reason, in words
}

const (
	scheduled = "failed, scheduled"
	poisoned  = "failed, not scheduled"
	leased    = "being processed"
	ended     = "completed"

	untouched = "no"
	released  = "released"
	marked    = "released, may pass"
	unblocked = "stream unblocked"
)

func matrixRows() []matrixRow {
	return []matrixRow{
		{nixie.OrderStrict, scheduled, untouched, false, false, "M2 waits for M1's retry"},
		{nixie.OrderStrict, scheduled, released, false, false, "a lease that is given back moves no message forward"},
		{nixie.OrderStrict, scheduled, marked, true, true, "the stream goes on without M1"},
		{nixie.OrderStrict, poisoned, untouched, false, false, "M2 waits for a decision about M1's letter"},
		{nixie.OrderStrict, poisoned, marked, true, true, "M2 goes on without M1"},
		{nixie.OrderStrict, poisoned, unblocked, true, true, "the stream goes on without M1"},
		{nixie.OrderStrict, leased, untouched, false, false, "one at a time"},
		{nixie.OrderStrict, leased, marked, false, false, "no message passes one that is leased"},
		{nixie.OrderStrict, ended, untouched, true, false, "as it should be"},
		{nixie.OrderRelaxed, scheduled, untouched, true, true, "M2 goes on without M1"},
		{nixie.OrderRelaxed, poisoned, untouched, true, true, "M2 goes on without M1"},
		{nixie.OrderRelaxed, leased, untouched, false, false, "one at a time"},
		{nixie.OrderRelaxed, ended, untouched, true, false, "as it should be"},
		{nixie.OrderNone, scheduled, untouched, true, false, "no order is owed"},
		{nixie.OrderNone, poisoned, untouched, true, false, "no order is owed"},
		{nixie.OrderNone, leased, untouched, true, false, "no order is owed"},
		{nixie.OrderNone, ended, untouched, true, false, "no order is owed"},
	}
}

// decisionMatrix tries the whole matrix and prints it.
func decisionMatrix(b *fixture) {
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-8s %-22s %-19s %-9s %-12s %s\n", "order", "M1", "M2's lease cleared", "M2", "told of gap", "ordering")
	for i, row := range matrixRows() {
		got, gap := b.decide(fmt.Sprint("row-", i), &row)
		word := map[bool]string{true: "can claim", false: "blocked"}
		fmt.Fprintf(&table, "%-8s %-22s %-19s %-9s %-12v %s\n", row.order, row.m1, row.m2, word[got], gap, row.ordering)
		if got != row.claimed || gap != row.gap {
			b.Errorf("%s, M1 %s, M2 %s: M2 is %s and told of a gap: %v; want %s, %v", row.order, row.m1, row.m2, word[got], gap,
				word[row.claimed], row.gap)
		}
	}
	b.Log(table.String())
}

// decide makes the row true in a queue of its own, and tries to claim M2.
func (b *fixture) decide(queue string, row *matrixRow) (claimed, gap bool) {
	b.Helper()
	b.ok(store.Configure(b.ctx, b.st, queue, nixie.QueueSettings{Order: row.order}, "ann", ""))
	b.put("m1", nixie.Queue(queue), nixie.Stream("s"))
	m2 := b.put("m2", nixie.Queue(queue), nixie.Stream("s"))
	claim := func(n int) []*nixie.Delivery {
		ds, err := b.st.Claim(b.ctx, queue, nixie.Want{Max: n, Lease: time.Hour})
		b.ok(err)
		return ds
	}
	m1 := claim(1)
	b.keys(m1, "m1")
	switch row.m1 {
	case scheduled:
		b.retry(m1[0], time.Minute)
	case poisoned:
		b.ok(b.settle(b.dying(m1[0], nixie.StatusReview)))
	case ended:
		b.complete(m1[0])
	}
	switch row.m2 {
	case unblocked:
		_, err := b.st.Features().Streams.Unblock(b.ctx,
			store.Unblocking{Queue: queue, Stream: "s", Actor: "ann", Reason: "independent of it"})
		b.ok(err)
	case released, marked:
		b.ok(b.amend(m2, store.MayPass))
		for _, d := range claim(1) { // none while M1 is leased
			b.keys([]*nixie.Delivery{d}, "m2")
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, MayPass: row.m2 == marked}))
		}
	}
	for _, d := range claim(9) {
		if d.Key == "m2" {
			return true, d.OrderGap
		}
	}
	return false, false
}

// oneHolder lets processes come and go. Each stream has one holder at any time. A new process takes
// no stream from another, and when a process vanishes only its streams move.
func oneHolder(b *fixture) {
	const streams, each = 12, 3
	b.ordered(nixie.OrderStrict, "")
	for i := range each {
		for s := range streams {
			b.put(fmt.Sprint(i), nixie.Stream(fmt.Sprint("s", s)))
		}
	}
	list := []store.Store{b.st, b.join(), b.join()}
	held := map[string]int{} // process by stream
	take := func(process, n, want int) (ds []*nixie.Delivery) {
		b.Helper()
		for range n {
			more := b.claimBy(list[process], 1) // a suspect comes alone
			ds = append(ds, more...)
		}
		same(b, "streams of one process", len(ds), want)
		for _, d := range ds {
			if other, taken := held[d.Stream]; taken {
				b.Fatalf("stream %s is held by process %d and given to %d", d.Stream, other, process)
			}
			same(b, "position in "+d.Stream, d.Key, "0")
			held[d.Stream] = process
		}
		return ds
	}
	first, second, third := take(0, 4, 4), take(1, 4, 4), take(2, 4, 4)
	list = append(list, b.join())
	take(3, 2, 0) // all streams are leased
	b.shared.Crash(list[1])
	for _, d := range second {
		delete(held, d.Stream)
	}
	moved := take(3, 8, 4)
	for _, d := range moved {
		same(b, "lease of "+d.Stream, d.Lease.Number, 2)
	}
	for _, d := range append(first, third...) {
		b.ok(b.settleBy(list[held[d.Stream]], nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}
