package storetest

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

func abandonClauses() []clause {
	return []clause{
		{"AVanishedHolderIsCounted", vanishedIsCounted},
		{"AJudgingClaimCostsNoAttempt", judgingIsFree},
		{"ARetryAfterJudgementIsARun", retryAfterJudgement},
		{"AReleasedOneIsStillToBeJudged", releasedUnjudged},
		{"SuspectsComeAlone", suspectsAlone},
		{"SuspectsComeByTurn", suspectsByTurn},
		{"FreshSeesNoSuspects", freshSeesNoSuspects},
		{"TheDeadOwnersLeasesAreVoid", deadOwner},
		{"TheLivingKeepTheirs", livingKeepTheirs},
		{"CloseGivesBack", closeGivesBack},
		{"R13_OnePoisonAmongNeighbours", poisonAmongNeighbours},
		{"APausedQueueIsSweptToo", pausedIsSwept},
		{"NotedStagesDecide", notedStages},
		{"AClaimIsNoted", claimsAreNoted},
		{"ANoteIsOfOneLease", noteOfOneLease},
		{"ANewStepIsNoPlainSuccess", newStepIsNoted},
	}
}

func vanishedIsCounted(b *bed) {
	for _, priority := range []int{0, 1} {
		d := b.took("a", nixie.Priority(priority))
		b.clock.Advance(31 * time.Second)
		again := b.take("a")
		same(b, "ID", again.ID, d.ID)
		if !again.Abandoned || again.AbandonedBy != "owner-1" || again.Crashes != 1 || again.Deliveries != 2 || again.Lease.Number != 2 {
			b.Fatalf("abandoned %v by %q, %d crashes, %d deliveries, lease %d", again.Abandoned, again.AbandonedBy, again.Crashes, again.Deliveries, again.Lease.Number)
		}
		same(b, "state", b.record(d.ID).State, nixie.Leased)
		b.clock.Advance(31 * time.Second)
		again = b.take("a")
		if !again.Abandoned || again.Crashes != 2 || again.Deliveries != 3 || again.Attempts != 1 {
			b.Fatalf("abandoned %v, %d crashes, %d deliveries, %d attempts", again.Abandoned, again.Crashes, again.Deliveries, again.Attempts)
		}
		b.ok(b.settle(nixie.Settlement{Delivery: again, Verb: nixie.Complete}))
	}
}

func judgingIsFree(b *bed) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	d := b.take("a")
	same(b, "attempts of the judging claim", d.Attempts, 1)
	f := b.failure(d, "lease expired")
	f.Reason = nixie.ReasonLeaseExpired
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial("")}))
	l := b.letterOf(d.ID)
	same(b, "attempts", l.Message.Attempts, 1)
	same(b, "deliveries", l.Message.Deliveries, 2)
	same(b, "crashes", l.Message.Crashes, 1)
	same(b, "reason", l.Reason, nixie.ReasonLeaseExpired)
}

func retryAfterJudgement(b *bed) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Retry, Delay: time.Second}))
	b.clock.Advance(time.Second)
	d := b.take("a")
	if d.Abandoned || d.Attempts != 2 || d.Deliveries != 3 || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d attempts, %d deliveries, %d crashes", d.Abandoned, d.Attempts, d.Deliveries, d.Crashes)
	}
}

func releasedUnjudged(b *bed) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Release}))
	d := b.take("a")
	if !d.Abandoned || d.Attempts != 1 || d.Deliveries != 3 || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d attempts, %d deliveries, %d crashes", d.Abandoned, d.Attempts, d.Deliveries, d.Crashes)
	}
}

func suspectsAlone(b *bed) {
	b.put("a")
	b.put("b")
	b.put("c")
	same(b, "claimed", len(b.claim(2)), 2)
	b.clock.Advance(31 * time.Second)
	b.put("urgent", nixie.Priority(4))
	first := b.take("a")
	ds := b.claim(9)
	b.keys(ds, "b")
	b.ok(b.settle(nixie.Settlement{Delivery: first, Verb: nixie.Retry}))
	b.keys(b.claim(9), "a")
	b.keys(b.claim(9), "urgent", "c")
}

func suspectsByTurn(b *bed) {
	b.put("a")
	b.put("b", nixie.Priority(1))
	b.put("c", nixie.Priority(2))
	same(b, "claimed", len(b.claim(9)), 3)
	b.clock.Advance(31 * time.Second)
	b.keys(b.claim(9), "c")
	b.keys(b.claim(9), "b")
	b.keys(b.claim(9), "a")
	b.keys(b.claim(9))
}

func freshSeesNoSuspects(b *bed) {
	fresh := func() []*nixie.Delivery {
		ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 9, Lease: 30 * time.Second, Fresh: true})
		b.ok(err)
		return ds
	}
	b.put("a")
	b.claim(1)
	b.clock.Advance(31 * time.Second)
	b.keys(fresh())
	b.put("b")
	b.put("c", nixie.Priority(1))
	b.keys(fresh(), "c", "b")
	b.keys(fresh())
	b.keys(b.claim(9), "a")
}

func deadOwner(b *bed) {
	for _, priority := range []int{0, 1} {
		other := b.join()
		b.put("a", nixie.Priority(priority))
		b.put("b", nixie.Priority(priority))
		b.put("c", nixie.Priority(priority))
		ds := b.claimBy(other, 3)
		b.keys(ds, "a", "b", "c")
		owner := ds[0].Lease.Owner
		b.ok(b.settleBy(other, nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}))
		b.shared.Crash(other)
		for _, key := range []string{"a", "c"} {
			d := b.take(key)
			if !d.Abandoned || d.Crashes != 1 || d.Attempts != 1 || d.Deliveries != 2 || d.AbandonedBy != owner {
				b.Fatalf("abandoned %v by %q: %+v", d.Abandoned, d.AbandonedBy, d.Message)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
		b.keys(b.claim(9))
		b.state(ds[1].ID, nixie.Succeeded)
		b.code(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}), nixie.CodeLeaseLost)
	}
}

func livingKeepTheirs(b *bed) {
	x, y := b.join(), b.join()
	b.put("a")
	b.put("b")
	dx, dy := b.claimBy(x, 1), b.claimBy(y, 1)
	b.keys(dx, "a")
	b.keys(dy, "b")
	b.shared.Crash(x)
	b.keys(b.claim(9), "a")
	b.keys(b.claim(9))
	b.ok(b.settleBy(y, nixie.Settlement{Delivery: dy[0], Verb: nixie.Complete}))
}

func closeGivesBack(b *bed) {
	other := b.join()
	b.put("a")
	b.keys(b.claimBy(other, 1), "a")
	b.ok(other.Close())
	d := b.take("a")
	if !d.Abandoned || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d crashes", d.Abandoned, d.Crashes)
	}
}

// poisonAmongNeighbours lets whoever runs one of ten messages die: the poison
// one reaches five crashes, each neighbour pays at most once.
func poisonAmongNeighbours(b *bed) {
	const poison = "3"
	for i := range 10 {
		b.put(fmt.Sprint(i))
	}
	for range 100 {
		st := b.join()
		ds := b.claimBy(st, 4)
		if len(ds) == 0 {
			b.ok(st.Close())
			break
		}
		died := false
		for _, d := range ds {
			s := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
			switch {
			case d.Abandoned && d.Crashes >= 5:
				s = b.dying(d, nixie.StatusOpen)
			case d.Abandoned:
				s.Verb = nixie.Retry
			case d.Key == poison:
				died = true
			}
			if died {
				break
			}
			b.ok(b.settleBy(st, s))
		}
		if died {
			b.shared.Crash(st)
			continue
		}
		b.ok(st.Close())
	}
	info := b.info()
	same(b, "dead", info.Dead, 1)
	same(b, "succeeded", info.Succeeded, 9)
	records, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	for _, m := range records {
		if want := map[bool]int{true: 5, false: 1}[m.Key == poison]; m.Crashes > want {
			b.Errorf("message %s has %d crashes, want at most %d", m.Key, m.Crashes, want)
		}
	}
}

// pausedIsSwept shows that the leases of a paused queue end, too, so that what
// an operator sees is right.
func pausedIsSwept(b *bed) {
	d := b.took("a")
	b.configure(nixie.QueueSettings{Paused: true})
	b.clock.Advance(31 * time.Second)
	b.keys(b.claim(9))
	b.state(d.ID, nixie.Queued)
	same(b, "crashes", b.record(d.ID).Crashes, 1)
}
