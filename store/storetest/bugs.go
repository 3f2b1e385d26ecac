package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// bugClauses are named after defects of other systems of this kind. docs/trust.md has the source of
// each by its number.
func bugClauses() []clause {
	return []clause{
		{"B001_RescueOfWhatMovedOn", rescueOfWhatMovedOn},
		{"B002_SweepSeesPastLongLeases", sweepPastLongLeases},
		{"B003_OnlyItsEndEndsALease", onlyItsEndEndsALease},
		{"B015_TenLeasesWithRenewals", tenLeasesRenewed},
		{"B019_SlotOfADeadHolder", slotOfADeadHolder},
		{"B021_CrashOnTheLastAttempt", crashOnLastAttempt},
		{"B022_DelayOfAHundredLeases", delayOfAHundredLeases},
		{"B030_TenOfADeadConsumer", tenOfADeadConsumer},
		{"B032_RestOfABatch", restOfABatch},
		{"B051_LargestOfEverything", largestOfEverything},
		{"B056_MuchThatIsNotDue", muchThatIsNotDue},
		{"B057_AbandonedKeepsItsPriority", abandonedKeepsPriority},
		{"B066_BatchFromOneStream", batchFromOneStream},
		{"B067_OneByOneIsAsTogether", oneByOneIsAsTogether},
		{"B069_NumbersStayAsTheyAre", numbersStay},
		{"B077_AMomentIsTheSameInEveryZone", momentsInZones},
		{"B086_RetentionCountsFromTheLatestDeath", retentionFromLatestDeath},
		{"B091_FiftyRedrives", fiftyRedrives},
	}
}

// hold claims up to n messages for a lease of this length.
func (b *fixture) hold(n int, lease time.Duration) []*nixie.Delivery {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: n, Lease: lease})
	b.ok(err)
	return ds
}

// B001: a rescuer queued messages again that had finished or were claimed again meanwhile.
func rescueOfWhatMovedOn(b *fixture) {
	other := b.join()
	for priority := range 2 { // members of a batch, and messages with a row of their own
		b.put("first", nixie.Priority(priority))
		b.put("second", nixie.Priority(priority))
		first, second := b.take("first"), b.take("second")
		b.complete(first)
		b.clock.Advance(31 * time.Second)
		again := b.claimBy(other, 1)
		b.keys(again, "second")
		same(b, "abandoned", again[0].Abandoned, true)
		b.keys(b.claim(9))
		b.code(b.settle(nixie.Settlement{Delivery: second, Verb: nixie.Complete}), nixie.CodeLeaseLost)
		b.ok(b.settleBy(other, nixie.Settlement{Delivery: again[0], Verb: nixie.Complete}))
		b.state(first.ID, nixie.Succeeded)
	}
}

// B002: a full page of running leases hid an expired lease behind it.
func sweepPastLongLeases(b *fixture) {
	const long = 60
	for i := range long {
		b.put(fmt.Sprint(i), nixie.Priority(i%2))
	}
	same(b, "held for long", len(b.hold(long, time.Hour)), long)
	b.put("short")
	b.put("urgent", nixie.Priority(1))
	b.keys(b.hold(2, time.Second), "urgent", "short")
	b.clock.Advance(time.Second)
	b.keys(b.claim(9), "urgent", "short")
	b.keys(b.claim(9))
}

// B003: a system guessed which of several timeouts applies, and took live work away. Here only the
// end of a lease counts.
func onlyItsEndEndsALease(b *fixture) {
	b.configure(nixie.QueueSettings{Lease: 3 * time.Second})
	for i, c := range []struct{ asked, extended, lasts time.Duration }{
		{0, 0, 3 * time.Second},
		{nixie.MinLease, 0, nixie.MinLease},
		{time.Hour, 0, time.Hour},
		{nixie.MaxLease, 0, nixie.MaxLease},
		{time.Second, time.Minute, time.Minute},
		{time.Minute, time.Second, time.Second},
		{nixie.MinLease, nixie.MaxLease, nixie.MaxLease},
	} {
		for priority := range 2 { // a member of a batch, and a message with a row of its own
			b.put("a", nixie.Priority(priority))
			ds := b.hold(1, c.asked)
			b.keys(ds, "a")
			if c.extended > 0 {
				b.ok(b.st.Extend(b.ctx, ds, c.extended)[0])
			}
			b.clock.Advance(c.lasts - time.Millisecond)
			b.keys(b.hold(9, 0))
			b.state(ds[0].ID, nixie.Leased)
			b.clock.Advance(time.Millisecond)
			d := b.take("a")
			same(b, fmt.Sprintf("abandoned in row %d", i), d.Abandoned, true)
			b.complete(d)
		}
	}
}

// B015: a worker that renews its leases keeps its messages, however long the work takes.
func tenLeasesRenewed(b *fixture) {
	b.put("plain")
	b.put("urgent", nixie.Priority(1))
	ds := b.claim(2)
	for range 30 {
		b.clock.Advance(10 * time.Second)
		for _, err := range b.st.Extend(b.ctx, ds, 30*time.Second) {
			b.ok(err)
		}
		b.keys(b.claim(9))
	}
	b.complete(ds...)
	for _, d := range ds {
		m := b.record(d.ID)
		same(b, "deliveries", m.Deliveries, 1)
		same(b, "crashes", m.Crashes, 0)
	}
}

// B019: work of a dead holder occupied the only slot, so that no worker could take the work back.
func slotOfADeadHolder(b *fixture) {
	other := b.join()
	b.put("a")
	b.keys(b.claimBy(other, 1), "a")
	b.shared.Crash(other)
	d := b.take("a")
	same(b, "abandoned", d.Abandoned, true)
}

// B021: a holder vanished in its last attempt, and all messages behind it waited for ever.
func crashOnLastAttempt(b *fixture) {
	b.ordered(nixie.OrderStrict, nixie.DeadFrees)
	b.inStream("m1", "m2")
	b.retry(b.take("m1"), 0)
	other := b.join()
	b.keys(b.claimBy(other, 9), "m1")
	b.shared.Crash(other)
	judged := b.claim(9)
	b.keys(judged, "m1")
	same(b, "abandoned", judged[0].Abandoned, true)
	b.ok(b.settle(b.dying(judged[0], nixie.StatusOpen)))
	b.complete(b.take("m2"))
}

// B022: a message that was due after the end of a lease ran once for each lease, because its holder
// kept the delay.
func delayOfAHundredLeases(b *fixture) {
	const lease = 30 * time.Second
	b.put("a", nixie.Delay(100*lease))
	d := b.took("b")
	b.retry(d, 100*lease)
	for range 100 {
		b.keys(b.hold(9, lease))
		b.clock.Advance(lease)
	}
	for _, d := range b.claim(9) {
		want := map[string]int{"a": 1, "b": 2}[d.Key]
		same(b, "deliveries of "+d.Key, d.Deliveries, want)
		same(b, "crashes of "+d.Key, d.Crashes, 0)
		b.complete(d)
	}
	b.keys(b.claim(9))
	same(b, "succeeded", b.info().Succeeded, 2)
}

// B030: the messages in hand of a consumer were lost with the consumer.
func tenOfADeadConsumer(b *fixture) {
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint(i))
		b.put(keys[i])
	}
	other := b.join()
	b.keys(b.claimBy(other, 10), keys...)
	b.shared.Crash(other)
	judged := b.claim(1) // judging runs nothing: all of them come, beyond Max
	b.keys(judged, keys...)
	for _, d := range judged {
		same(b, "abandoned", d.Abandoned, true)
		b.complete(d)
	}
	b.keys(b.claim(9))
}

// B032: a stop left the rest of a batch marked as claimed.
func restOfABatch(b *fixture) {
	b.fill(10, 10)
	for i, d := range b.claim(10) {
		verb := nixie.Release
		if i < 3 {
			verb = nixie.Complete
		}
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: verb}))
	}
	same(b, "the rest that another claims", len(b.claimBy(b.join(), 10)), 7)
}

// B051: a message whose notification was too long could not be enqueued.
func largestOfEverything(b *fixture) {
	long := strings.Repeat("n", nixie.MaxName)
	m := nixie.Message{
		Queue: long, Type: long, Key: long, Stream: long, DedupeKey: long, Body: bytes.Repeat([]byte{0xff}, 1<<20),
		Headers: []nixie.Header{{Name: "h", Value: strings.Repeat("v", nixie.MaxHeaders-1)}},
	}
	r, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	ds, err := b.st.Claim(b.ctx, long, nixie.Want{Max: 1, Lease: time.Minute})
	b.ok(err)
	b.keys(ds, long)
	b.ok(b.settle(b.dying(ds[0], nixie.StatusOpen)))
	b.ok(b.resolve(b.letterOf(r[0].ID).ID, store.OnRedrive))
	ds, err = b.st.Claim(b.ctx, long, nixie.Want{Max: 1, Lease: time.Minute})
	b.ok(err)
	b.keys(ds, long)
	same(b, "body came back", bytes.Equal(ds[0].Body, m.Body), true)
	same(b, "headers came back", slices.Equal(ds[0].Headers, m.Headers), true)
}

// B056: messages that could not be delivered held up others that could.
func muchThatIsNotDue(b *fixture) {
	ms := make([]nixie.Message, nixie.MaxBatch)
	for i := range ms {
		ms[i] = nixie.Message{Queue: work, Delay: time.Hour, Priority: i % 5}
	}
	_, err := b.st.Enqueue(b.ctx, ms...)
	b.ok(err)
	b.put("due", nixie.Priority(nixie.MinPriority))
	b.put("plain")
	start := time.Now()
	b.keys(b.claim(10), "plain", "due")
	if took := time.Since(start); took > time.Second {
		b.Fatalf("the claim took %s", took)
	}
}

// B057: work that was taken back from a dead holder came after all new work.
func abandonedKeepsPriority(b *fixture) {
	b.put("low", nixie.Priority(-1))
	b.put("stale", nixie.Priority(2))
	same(b, "claimed", len(b.claim(2)), 2)
	b.clock.Advance(31 * time.Second)
	for i := range 5 {
		b.put(fmt.Sprint("new-", i))
	}
	b.keys(b.claim(9), "stale", "low") // messages to be judged come alone, before new ones
}

// B066: a rule of one message at a time held for claims of one message only.
func batchFromOneStream(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	want := make([]string, 10)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	b.inStream(want...)
	for _, key := range want {
		ds := b.claim(10)
		b.keys(ds, key)
		b.complete(ds...)
	}
}

// B067: messages in one call got no defaults and no check of uniqueness.
func oneByOneIsAsTogether(b *fixture) {
	list := func(queue string) []nixie.Message {
		ms := []nixie.Message{
			{Key: "plain", Body: []byte("1")},
			{Key: "first", DedupeKey: "k", Body: []byte("2")},
			{Key: "second", DedupeKey: "k", Body: []byte("3")},
			{Key: "later", Delay: time.Minute, Priority: 2},
			{Key: "replaces", DedupeKey: "k", Body: []byte("4"), OnConflict: nixie.ReplaceExisting},
			{Key: "in a stream", Stream: "s", Headers: []nixie.Header{{Name: "h", Value: "v"}}},
		}
		for i := range ms {
			ms[i].Queue = queue
		}
		return ms
	}
	together, err := b.st.Enqueue(b.ctx, list("together")...)
	b.ok(err)
	var separate []nixie.Receipt
	for _, m := range list("separate") {
		r, err := b.st.Enqueue(b.ctx, m)
		b.ok(err)
		separate = append(separate, r...)
	}
	for i, r := range separate {
		same(b, "a duplicate", r.Duplicate, together[i].Duplicate)
		same(b, "different", r.Different, together[i].Different)
		x, y := b.record(r.ID), b.record(together[i].ID)
		x.ID, x.Queue = y.ID, y.Queue
		same(b, "message one by one", fmt.Sprintf("%+v", x), fmt.Sprintf("%+v", y))
	}
}

// B069: numbers passed through a format that cannot hold them.
func numbersStay(b *fixture) {
	for i, body := range []string{
		`{"n":9007199254740993,"big":1e400,"small":1e-400,"long":0.1000000000000000055511151231257827}`,
		`[-0,1.0,1E+2,18446744073709551616,"\ud800"]`,
	} {
		m := message(fmt.Sprint(i), nixie.WithHeader("n", "9007199254740993"))
		m.Body = []byte(body)
		_, err := b.st.Enqueue(b.ctx, m)
		b.ok(err)
		d := b.take(m.Key)
		same(b, "body", string(d.Body), body)
		same(b, "header", d.Header("n"), "9007199254740993")
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		same(b, "body in the letter", string(b.letterOf(d.ID).Message.Body), body)
	}
}

// B077: moments were compared by their local clock times.
func momentsInZones(b *fixture) {
	due := b.clock.Now().Add(time.Hour)
	for _, hours := range []int{-12, 0, 5, 14} {
		zone := time.FixedZone(fmt.Sprint("zone ", hours), hours*3600)
		m := message(fmt.Sprint(hours))
		m.NotBefore, m.ExpiresAt = due.In(zone), due.Add(time.Hour).In(zone)
		_, err := b.st.Enqueue(b.ctx, m)
		b.ok(err)
	}
	b.clock.Advance(time.Hour - time.Millisecond)
	b.keys(b.claim(9))
	b.clock.Advance(time.Millisecond)
	ds := b.claim(9)
	b.keys(ds, "-12", "0", "5", "14")
	for _, d := range ds {
		if !d.ExpiresAt.Equal(due.Add(time.Hour)) {
			b.Fatalf("message %s expires at %s, want %s", d.Key, d.ExpiresAt, due.Add(time.Hour))
		}
	}
}

// B086: a message that failed again kept the retention of its first death, and was deleted while an
// operator still had to look at it.
func retentionFromLatestDeath(b *fixture) {
	b.configure(nixie.QueueSettings{LetterRetention: time.Hour, Retention: time.Hour})
	l := b.dead("a", nixie.StatusOpen)
	b.clock.Advance(59 * time.Minute)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	b.clock.Advance(24 * time.Hour)
	same(b, "pruned while open", b.prune(0, false).Letters, 0)
	b.ok(b.resolve(l.ID, store.OnDiscard))
	b.clock.Advance(time.Hour - time.Millisecond)
	same(b, "pruned too early", b.prune(0, false).Letters, 0)
	b.clock.Advance(time.Millisecond)
	same(b, "pruned", b.prune(0, false).Letters, 1)
}

// B091: a message that was dead-lettered often grew by a header each time, until it was too large.
func fiftyRedrives(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.WithHeader("h", "v"))
	for i := range 50 {
		b.ok(b.resolve(l.ID, store.OnRedrive))
		d := b.take("a")
		same(b, "redrives", d.Redrives, i+1)
		same(b, "headers", len(d.Headers), 1)
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	}
	got := b.letter(l.ID)
	same(b, "history", len(got.History), 51)
	same(b, "header", got.Message.Header("h"), "v")
	same(b, "body", string(got.Message.Body), "body of a")
}
