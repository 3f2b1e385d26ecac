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
		{"AllIsJudgedInOneClaim", allJudged},
		{"WhoJudgesRunsNothing", judgeVanishes},
		{"SuspectsComeInGroupsThatHalve", suspectGroups},
		{"SuspectsComeByDueRank", suspectsByDueRank},
		{"SuspectsThatSurviveAreCleared", survivorsCleared},
		{"FreshSeesNoSuspects", freshSeesNoSuspects},
		{"TheDeadOwnersLeasesAreVoid", deadOwner},
		{"TheLivingKeepTheirs", livingKeepTheirs},
		{"CloseGivesBack", closeGivesBack},
		{"R13_OnePoisonAmongTenMessages", poisonAmongTen},
		{"APausedQueueIsSweptToo", pausedIsSwept},
		{"LoggedProgressDecides", loggedProgress},
		{"AClaimLogsThatItsMessagesWait", claimsAreLogged},
		{"ProgressIsOfOneLease", progressOfOneLease},
		{"BegunAfterItsLeaseIsJudged", begunLate},
		{"ANewStepIsNoPlainSuccess", newStepIsRefused},
	}
}

func vanishedIsCounted(b *fixture) {
	for _, priority := range []int{0, 1} {
		d := b.took("a", nixie.Priority(priority))
		b.clock.Advance(31 * time.Second)
		again := b.take("a")
		same(b, "ID", again.ID, d.ID)
		if !again.Abandoned || again.AbandonedBy != "owner-1" || again.Crashes != 1 || again.Deliveries != 2 || again.Lease.Number != 2 {
			b.Fatalf("abandoned %v by %q, %d crashes, %d deliveries, lease %d", again.Abandoned, again.AbandonedBy, again.Crashes,
				again.Deliveries, again.Lease.Number)
		}
		same(b, "state", b.record(d.ID).State, nixie.Leased)
		b.ok(b.settle(nixie.Settlement{Delivery: again, Verb: nixie.Retry}))
		again = b.take("a")
		same(b, "attempts of the run", again.Attempts, 1)
		b.clock.Advance(31 * time.Second)
		again = b.take("a")
		if !again.Abandoned || again.Crashes != 2 || again.Deliveries != 4 || again.Attempts != 0 {
			b.Fatalf("abandoned %v, %d crashes, %d deliveries, %d attempts", again.Abandoned, again.Crashes, again.Deliveries,
				again.Attempts)
		}
		b.ok(b.settle(nixie.Settlement{Delivery: again, Verb: nixie.Complete}))
	}
}

func judgingIsFree(b *fixture) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	d := b.take("a")
	same(b, "attempts of the judging claim", d.Attempts, 0)
	f := b.failure(d, "lease expired")
	f.Reason = nixie.ReasonLeaseExpired
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial("")}))
	l := b.letterOf(d.ID)
	same(b, "attempts", l.Message.Attempts, 0)
	same(b, "deliveries", l.Message.Deliveries, 2)
	same(b, "crashes", l.Message.Crashes, 1)
	same(b, "reason", l.Reason, nixie.ReasonLeaseExpired)
}

func retryAfterJudgement(b *fixture) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Retry, Delay: time.Second}))
	b.clock.Advance(time.Second)
	d := b.take("a")
	if d.Abandoned || d.Attempts != 1 || d.Deliveries != 3 || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d attempts, %d deliveries, %d crashes", d.Abandoned, d.Attempts, d.Deliveries, d.Crashes)
	}
}

func releasedUnjudged(b *fixture) {
	b.took("a")
	b.clock.Advance(31 * time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Release}))
	d := b.take("a")
	if !d.Abandoned || d.Attempts != 0 || d.Deliveries != 3 || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d attempts, %d deliveries, %d crashes", d.Abandoned, d.Attempts, d.Deliveries, d.Crashes)
	}
}

// judged retries all abandoned deliveries, due now.
func (b *fixture) judged(ds []*nixie.Delivery) {
	b.Helper()
	for _, d := range ds {
		same(b, "abandoned "+d.Key, d.Abandoned, true)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
	}
}

// suspected makes suspects of new messages, in the order of their keys.
func (b *fixture) suspected(keys ...string) {
	b.Helper()
	for _, key := range keys {
		b.put(key)
	}
	b.keys(b.claim(len(keys)), keys...)
	b.clock.Advance(31 * time.Second)
	ds := b.claim(1)
	b.keys(ds, keys...)
	b.judged(ds)
}

// group claims like a worker that has nothing in hand and runs several messages at once.
func (b *fixture) group(parallel int) []*nixie.Delivery {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 100, Lease: 30 * time.Second, Parallel: parallel})
	b.ok(err)
	return ds
}

func (b *fixture) fresh() []*nixie.Delivery {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 9, Lease: 30 * time.Second, NoSuspects: true})
	b.ok(err)
	return ds
}

// allJudged receives all abandoned messages of a holder in one claim and with nothing else. That
// holds for a small Max, and while another process has messages in hand.
func allJudged(b *fixture) {
	for _, fresh := range []bool{false, true} {
		for _, priority := range []int{0, 1} {
			var keys []string
			for i := range 40 {
				keys = append(keys, fmt.Sprint(i))
				b.put(keys[i], nixie.Priority(priority))
			}
			other := b.join()
			b.keys(b.claimBy(other, 40), keys...)
			b.shared.Crash(other)
			b.put("new")
			ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 1, Lease: 30 * time.Second, NoSuspects: fresh})
			b.ok(err)
			b.keys(ds, keys...)
			for _, d := range append(ds, b.take("new")) {
				b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
			}
		}
	}
}

// judgeVanishes counts nothing when a holder vanishes that was to judge.
func judgeVanishes(b *fixture) {
	first := b.took("a")
	b.clock.Advance(31 * time.Second)
	b.take("a")
	b.clock.Advance(31 * time.Second)
	d := b.take("a")
	if !d.Abandoned || d.Crashes != 1 || d.Attempts != 0 || d.Deliveries != 3 || d.AbandonedBy != first.Lease.Owner {
		b.Fatalf("abandoned %v by %q, %d crashes, %d attempts, %d deliveries", d.Abandoned, d.AbandonedBy, d.Crashes, d.Attempts,
			d.Deliveries)
	}
}

// suspectGroups lets every holder of "a" vanish. Its groups halve, suspects with fewer crashes come
// before it, and the store knows when it was alone twice.
func suspectGroups(b *fixture) {
	b.suspected("a", "b", "c", "d", "e", "f", "g", "h")
	b.put("new", nixie.Priority(4))
	for crashes, group := range [][2][]string{
		1: {{"a", "b", "c", "d"}, {"e", "f", "g", "h"}},
		2: {{"a", "b"}, {"c", "d"}},
		3: {{"a"}, {"b"}},
		4: {{"a"}, nil},
		5: {{"a"}, nil},
	} {
		if crashes == 0 {
			continue
		}
		b.keys(b.group(8), group[0]...)
		for _, d := range b.group(8) { // those not in a group with "a" survive
			if d.Crashes == 0 {
				b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
				continue
			}
			group[1] = group[1][1:]
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
		same(b, "suspects that did not come", len(group[1]), 0)
		b.clock.Advance(31 * time.Second)
		ds := b.group(8)
		b.keys(ds, group[0]...)
		for _, d := range ds {
			same(b, "crashes", d.Crashes, crashes+1)
			same(b, fmt.Sprint("alone twice after crashes: ", d.Crashes), d.AbandonedAlone, crashes > 3)
		}
		b.judged(ds)
	}
}

func suspectsByDueRank(b *fixture) {
	b.put("a")
	b.put("b", nixie.Priority(1))
	b.put("c", nixie.Priority(2))
	same(b, "claimed", len(b.claim(9)), 3)
	b.clock.Advance(31 * time.Second)
	ds := b.claim(1)
	b.keys(ds, "c", "b", "a")
	b.judged(ds)
	b.put("urgent", nixie.Priority(4))
	b.keys(b.claim(9), "c")
	b.keys(b.group(4), "b", "a")
	b.keys(b.claim(9), "urgent")
}

// survivorsCleared retries one suspect that ran, which clears it, and releases another, which does
// not.
func survivorsCleared(b *fixture) {
	b.suspected("a", "b")
	ds := b.group(4)
	b.keys(ds, "a", "b")
	b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Retry, Failure: b.failure(ds[0], "an error of its own")}))
	b.ok(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Release}))
	b.put("c")
	d := b.take("b")
	same(b, "crashes of who was given back", d.Crashes, 1)
	for _, d := range b.claim(9) {
		if d.Crashes != 0 || d.Attempts != 1 && d.Key == "c" || d.Attempts != 2 && d.Key == "a" {
			b.Errorf("%s: %d crashes, %d attempts", d.Key, d.Crashes, d.Attempts)
		}
	}
}

// freshSeesNoSuspects claims with messages in hand. It receives nothing to run while suspects wait
// for a worker with nothing in hand. It receives other messages while a suspect is leased.
func freshSeesNoSuspects(b *fixture) {
	b.suspected("a", "b")
	b.put("c")
	b.put("d", nixie.Priority(1))
	b.keys(b.fresh())
	a := b.take("a")
	b.keys(b.fresh(), "d", "c")
	b.put("e")
	b.ok(b.settle(nixie.Settlement{Delivery: a, Verb: nixie.Complete}))
	b.keys(b.fresh())
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("b"), Verb: nixie.Complete}))
	b.keys(b.fresh(), "e")
}

func deadOwner(b *fixture) {
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
		judged := b.claim(1)
		b.keys(judged, "a", "c")
		for _, d := range judged {
			if !d.Abandoned || d.Crashes != 1 || d.Attempts != 0 || d.Deliveries != 2 || d.AbandonedBy != owner {
				b.Fatalf("abandoned %v by %q: %+v", d.Abandoned, d.AbandonedBy, d.Message)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
		b.keys(b.claim(9))
		b.state(ds[1].ID, nixie.Succeeded)
		b.code(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}), nixie.CodeLeaseLost)
	}
}

func livingKeepTheirs(b *fixture) {
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

func closeGivesBack(b *fixture) {
	other := b.join()
	b.put("a")
	b.keys(b.claimBy(other, 1), "a")
	b.ok(other.Close())
	d := b.take("a")
	if !d.Abandoned || d.Crashes != 1 {
		b.Fatalf("abandoned %v, %d crashes", d.Abandoned, d.Crashes)
	}
}

// poisonAmongTen lets every holder of a poison message vanish. The poison message reaches five
// crashes, and each of the nine others has at most one.
func poisonAmongTen(b *fixture) {
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

// pausedIsSwept shows that the leases of a paused queue end too, so that an operator sees the right
// state.
func pausedIsSwept(b *fixture) {
	d := b.took("a")
	b.configure(nixie.QueueSettings{Paused: true})
	b.clock.Advance(31 * time.Second)
	b.keys(b.claim(9))
	b.state(d.ID, nixie.Queued)
	same(b, "crashes", b.record(d.ID).Crashes, 1)
}
