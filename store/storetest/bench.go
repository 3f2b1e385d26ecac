package storetest

import (
	"testing"

	"github.com/nixie-go/nixie"
)

// batch is the number of messages in a call of a benchmark.
const batch = 1000

// Bench measures a store through its contract, in one process and one goroutine. Each part reports
// messages per second.
//
//	EnqueueOne    one message a call
//	EnqueueBatch  a thousand messages a call
//	DrainBatch    claim a thousand and complete them in one call; enqueueing is not measured
//	FailOnce      enqueue, claim, retry with a failure, claim, complete
//	AllDie        enqueue, claim, bury
func Bench(b *testing.B, h Harness) {
	nothing := func(*fixture, int) {}
	for _, c := range []struct {
		name       string
		size       int
		setUp, run func(b *fixture, n int)
	}{
		{"EnqueueOne", 1, nothing, func(b *fixture, n int) { b.fill(n, 1) }},
		{"EnqueueBatch", batch, nothing, func(b *fixture, n int) { b.fill(n, batch) }},
		{"DrainBatch", batch, func(b *fixture, n int) { b.fill(n, batch) }, (*fixture).completeAll},
		{"FailOnce", batch, nothing, (*fixture).failOnce},
		{"AllDie", batch, nothing, (*fixture).allDie},
	} {
		b.Run(c.name, func(b *testing.B) {
			fixture, n := newFixture(b, h), b.N*c.size
			c.setUp(fixture, n)
			b.ResetTimer()
			c.run(fixture, n)
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// fill enqueues n messages of 100 bytes, size a call.
func (b *fixture) fill(n, size int) {
	body := make([]byte, 100)
	ms := make([]nixie.Message, 0, size)
	for i := range n {
		if ms = append(ms, nixie.Message{Queue: work, Type: "bench", Body: body}); len(ms) == size || i == n-1 {
			_, err := b.st.Enqueue(b.ctx, ms...)
			b.ok(err)
			ms = ms[:0]
		}
	}
}

// settleAll claims batches until the queue is empty, and settles each batch in one call.
func (b *fixture) settleAll(with func(d *nixie.Delivery) nixie.Settlement) {
	ss := make([]nixie.Settlement, 0, batch)
	for {
		ds := b.claim(batch)
		if len(ds) == 0 {
			return
		}
		ss = ss[:0]
		for _, d := range ds {
			ss = append(ss, with(d))
		}
		for _, err := range b.st.Settle(b.ctx, ss) {
			b.ok(err)
		}
	}
}

func (b *fixture) completeAll(int) {
	b.settleAll(func(d *nixie.Delivery) nixie.Settlement { return nixie.Settlement{Delivery: d, Verb: nixie.Complete} })
}

func (b *fixture) failOnce(n int) {
	for done := 0; done < n; done += batch {
		b.fill(batch, batch)
		b.settleAll(func(d *nixie.Delivery) nixie.Settlement {
			if d.Attempts > 1 {
				return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			}
			return nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "once")}
		})
	}
}

func (b *fixture) allDie(n int) {
	for done := 0; done < n; done += batch {
		b.fill(batch, batch)
		b.settleAll(func(d *nixie.Delivery) nixie.Settlement { return b.dying(d, nixie.StatusOpen) })
	}
}
