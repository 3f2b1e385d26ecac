package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func orderChanges(b *fixture) {
	b.inStream("m1")
	settings := nixie.QueueSettings{Order: nixie.OrderStrict}
	b.unchanged(func() { b.code(store.Configure(b.ctx, b.st, work, settings, "ann", "r"), nixie.CodeConflict) })
	d := b.take("m1")
	b.unchanged(func() { b.code(store.Configure(b.ctx, b.st, work, settings, "ann", "r"), nixie.CodeConflict) })
	b.complete(d)
	b.configure(settings)
	b.inStream("m2")
	b.unchanged(func() {
		b.code(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{}, "ann", "r"), nixie.CodeConflict)
	})
	b.ok(b.settle(b.dying(b.take("m2"), nixie.StatusOpen)))
	b.configure(nixie.QueueSettings{})
	_, err := store.FindStream(b.ctx, b.st.Features().Streams, work, "s")
	b.code(err, nixie.CodeNotFound)
}

// orderForgotten discards a dead message, and restores it after its queue had no order for a while:
// its position in the stream ended with the order.
func orderForgotten(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1")
	d := b.take("m1")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	b.ok(b.resolve(l.ID, store.OnDiscard))
	b.configure(nixie.QueueSettings{})
	b.ordered(nixie.OrderStrict, "")
	b.ok(b.resolve(l.ID, store.OnRestore))
	_, err := store.FindStream(b.ctx, b.st.Features().Streams, work, "s")
	b.code(err, nixie.CodeNotFound)
	b.ok(b.resolve(l.ID, store.OnRedrive)) // it is the last of its stream
	same(b, "head", b.stream().Head, d.ID)
}

func loosening(b *fixture) {
	for _, to := range []nixie.QueueSettings{{Order: nixie.OrderRelaxed}, {Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}} {
		b.ordered(nixie.OrderStrict, "")
		b.inStream("m1", "m2")
		b.ok(b.settle(b.dying(b.take("m1"), nixie.StatusOpen)))
		b.keys(b.claim(9))
		b.configure(to)
		b.complete(b.take("m2"))
		b.emptyStreams()
	}
}

// looseningPassesNoMessage delivers the messages of a strict queue that became relaxed in their
// order, without a gap.
func looseningPassesNoMessage(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	b.complete(b.take("m1"))
	b.ordered(nixie.OrderRelaxed, "")
	for _, key := range []string{"m2", "m3"} {
		d := b.take(key)
		b.gap(d, false)
		b.complete(d)
	}
}

// markedInRelaxed marks a message in a strict queue that then becomes relaxed. The marked message
// is due first, so it counts as the next of its stream.
func markedInRelaxed(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	due := b.clock.Now()
	b.inStream("m1", "m2")
	b.retry(b.take("m1"), time.Minute)
	b.ok(b.amend(b.messageOf("m2"), store.MayPass))
	b.ordered(nixie.OrderRelaxed, "")
	b.clock.Advance(time.Minute)
	q := b.info()
	same(b, "ready", q.Ready, 1)
	same(b, "blocked", q.Blocked, 1)
	if !q.OldestAt.Equal(due) {
		b.Fatalf("oldest ready message is due since %s, want %s", q.OldestAt, due)
	}
	b.complete(b.take("m2"))
	b.complete(b.take("m1"))
}
