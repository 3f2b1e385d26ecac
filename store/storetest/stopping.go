package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

func stoppingClauses() []clause {
	return []clause{
		{"AToldHolderThatVanishesIsNoCrash", toldVanish},
		{"AnAnswerBeginsTheCountOfStopsAnew", answerEndsStops},
		{"AKillerIsSeenBetweenStops", killerBetweenStops},
		{"AStopIsTakenBack", stopTakenBack},
		{"AStopIsToldBeforeTheFirstClaim", toldBeforeClaim},
	}
}

// stopping joins a process, lets it claim one message, and tells it to stop.
func (b *fixture) stopping(key string) (store.Store, *nixie.Delivery) {
	b.Helper()
	other := b.join()
	ds := b.claimBy(other, 1)
	b.keys(ds, key)
	b.ok(other.Features().Stopping(b.ctx, true))
	return other, ds[0]
}

// sweep lets a claim of another queue end what is over.
func (b *fixture) sweep() {
	b.Helper()
	_, err := b.st.Claim(b.ctx, "other", nixie.Want{Max: 1})
	b.ok(err)
}

// toldVanish lets holders that were told to stop vanish with a message: killed, or silent until
// their lease ends. It costs nothing up to lease.MaxStops times.
func toldVanish(b *fixture) {
	for _, kind := range []string{"plain", "urgent", "in a stream"} {
		var opts []nixie.Option
		switch kind {
		case "urgent":
			opts = append(opts, nixie.Priority(1))
		case "in a stream":
			b.configure(nixie.QueueSettings{Order: nixie.OrderStrict})
			opts = append(opts, nixie.Stream("s"))
		}
		id := b.put("a", opts...)
		for n := 1; n <= lease.MaxStops; n++ {
			other, d := b.stopping("a")
			if d.Abandoned || d.Attempts != 1 || d.Deliveries != n || d.Crashes != 0 || d.Patience.Free != n-1 {
				b.Fatalf("%s, after %d stops: abandoned %v, %+v", kind, n-1, d.Abandoned, d.Message)
			}
			if n%2 == 0 {
				b.clock.Advance(31 * time.Second)
			}
			b.shared.Crash(other)
			b.sweep()
			m := b.record(id)
			if p := m.Patience; p.Stops != n || p.Free != n || p.StoppedBy != d.Lease.Owner || m.Attempts != 0 || m.State != nixie.Queued {
				b.Fatalf("%s, after %d stops: %+v", kind, n, m.Message)
			}
		}
		other, _ := b.stopping("a")
		b.shared.Crash(other)
		d := b.take("a")
		if p := d.Patience; !d.Abandoned || d.Crashes != 1 || p.Stops != lease.MaxStops || p.Free != lease.MaxStops {
			b.Fatalf("%s, one stop more: abandoned %v, %+v", kind, d.Abandoned, d.Message)
		}
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}

func answerEndsStops(b *fixture) {
	id := b.put("a")
	other, _ := b.stopping("a")
	b.shared.Crash(other)
	d := b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, Waiver: nixie.WaiveStopping}))
	same(b, "stops after a release", b.record(id).Patience.Stops, 1)
	d = b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "no")}))
	m := b.record(id)
	if p := m.Patience; p.Stops != 0 || p.StoppedBy != "" || p.Free != 2 || m.Attempts != 1 || m.Deliveries != 3 {
		b.Errorf("after an answer: %+v", m.Message)
	}
}

// killerBetweenStops counts the holders that were not told to stop as ever.
func killerBetweenStops(b *fixture) {
	b.put("a")
	for n := range 3 {
		other, _ := b.stopping("a")
		b.shared.Crash(other)
		killed := b.join()
		b.keys(b.claimBy(killed, 1), "a")
		b.shared.Crash(killed)
		d := b.take("a")
		if !d.Abandoned || d.Crashes != n+1 || d.Patience.Stops != n+1 {
			b.Fatalf("abandoned %v, %+v", d.Abandoned, d.Message)
		}
		b.judged([]*nixie.Delivery{d})
	}
}

func stopTakenBack(b *fixture) {
	b.put("a")
	other, d := b.stopping("a")
	b.ok(other.Features().Stopping(b.ctx, false))
	b.ok(b.settleBy(other, nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	b.keys(b.claimBy(other, 1), "a")
	b.shared.Crash(other)
	if d := b.take("a"); !d.Abandoned || d.Crashes != 1 || d.Patience.Stops != 0 {
		b.Errorf("abandoned %v, %+v", d.Abandoned, d.Message)
	}
}

// toldBeforeClaim tells a process that has nothing in hand, while its first claim is on its way.
func toldBeforeClaim(b *fixture) {
	for _, of := range []string{"a", "b"} {
		other := b.join()
		if of == "b" {
			b.keys(b.claimBy(other, 1))
		}
		b.put(of)
		b.ok(other.Features().Stopping(b.ctx, true))
		b.keys(b.claimBy(other, 1), of)
		b.shared.Crash(other)
		d := b.take(of)
		if d.Abandoned || d.Crashes != 0 {
			b.Errorf("%s: abandoned %v, %d crashes", of, d.Abandoned, d.Crashes)
		}
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}
