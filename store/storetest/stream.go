package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

func streamClauses() []clause {
	return []clause{
		{"WhoPassesARestoredOneKnows", passesRestored},
		{"WithoutOrderAStreamIsAName", unordered},
		{"TheUnfinishedOfAStream", unfinishedOfStream},
		{"OneLeaseAtATime", oneLease},
		{"R39_StrictFollowerWaitsOverBackoff", strictWaits},
		{"Show2_TheDecisionMatrix", decisionMatrix},
		{"R40_OneFollowerMayPass", onePasses},
		{"AMarkedOneWaitsForADueHead", markedWaits},
		{"AMarkedHeadIsStillTheHead", markedHead},
		{"R41_RelaxedFollowersGoWhileTheHeadWaits", relaxedGo},
		{"R42_ADeadHeadBlocksOrFrees", deadHead},
		{"R43_ABlockedStreamStarvesNoOther", blockedStarvesNoOther},
		{"R44_EveryStreamHasOneHolder", oneHolder},
		{"R35_SiblingsAreRedrivenInOrder", siblings},
		{"PriorityDoesNotBreakTheOrder", priorityKeepsOrder},
		{"AnAbandonedHeadIsStillTheHead", abandonedHead},
		{"AScheduledHeadKeepsTheOthersWaiting", scheduledHead},
		{"AFreedHeadIsAppended", freedHead},
		{"ARedrivenHeadKeepsItsPosition", redrivenHead},
		{"ADiscardedHeadFrees", discardedHead},
		{"ACanceledHeadFrees", canceledHead},
		{"AReleasedOneMayPass", releasedPasses},
		{"TheOrderChangesOnlyWhenNothingIsOnItsWay", orderChanges},
		{"APositionEndsWithTheOrder", orderForgotten},
		{"LooseningTheOrderFrees", loosening},
		{"LooseningTheOrderPassesNoMessage", looseningPassesNoMessage},
		{"AMarkedOneGoesByItsDueRankInARelaxedQueue", markedInRelaxed},
		{"BlockedOnesAreListedFirst", blockedFirst},
		{"SinceWhenABlockedOneIsDue", blockedSince},
		{"UnblockNeedsAReason", unblockInvalid},
	}
}

// ordered gives the queue work an order.
func (b *fixture) ordered(order nixie.Order, dead nixie.DeadHead) {
	b.Helper()
	b.configure(nixie.QueueSettings{Order: order, DeadHead: dead})
}

// inStream enqueues messages to stream s.
func (b *fixture) inStream(keys ...string) {
	b.Helper()
	for _, key := range keys {
		b.put(key, nixie.Stream("s"))
	}
}

func (b *fixture) retry(d *nixie.Delivery, delay time.Duration) {
	b.Helper()
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: delay, Failure: b.failure(d, "it fails")}))
}

func (b *fixture) complete(ds ...*nixie.Delivery) {
	b.Helper()
	for _, d := range ds {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}

// gap expects a delivery with or without OrderGap.
func (b *fixture) gap(d *nixie.Delivery, want bool) {
	b.Helper()
	same(b, "order gap of "+d.Key, d.OrderGap, want)
	same(b, "order gap of "+d.Key+" as it is shown", b.record(d.ID).OrderGap, want)
}

func (b *fixture) stream() store.Stream {
	b.Helper()
	v, err := store.FindStream(b.ctx, b.st.Features().Streams, work, "s")
	b.ok(err)
	return v
}

func (b *fixture) unblock(mark bool) int64 {
	b.Helper()
	n, err := b.st.Features().Streams.Unblock(b.ctx,
		store.Unblocking{Queue: work, Stream: "s", Actor: "ann", Reason: "because", Mark: mark})
	b.ok(err)
	return n
}

func unordered(b *fixture) {
	b.inStream("a", "b")
	b.keys(b.claim(9), "a", "b")
	_, err := store.FindStream(b.ctx, b.st.Features().Streams, work, "s")
	b.code(err, nixie.CodeNotFound)
}

func oneLease(b *fixture) {
	for _, order := range []nixie.Order{nixie.OrderStrict, nixie.OrderRelaxed} {
		b.ordered(order, "")
		b.inStream("a", "b")
		b.put("other", nixie.Stream("t"))
		b.put("none")
		ds := b.claim(9)
		b.keys(ds, "a", "other", "none")
		b.keys(b.claim(9))
		b.complete(ds...)
		d := b.take("b")
		b.gap(d, false)
		b.complete(d)
	}
}

func strictWaits(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	b.retry(b.take("m1"), time.Minute)
	b.keys(b.claim(9))
	v := b.stream()
	if v.State != store.StreamWaiting || v.Followers != 1 || !v.Due.Equal(b.clock.Now().Add(time.Minute)) || v.Failure != "it fails" ||
		v.Attempts != 1 {
		b.Fatalf("stream is %+v", v)
	}
	b.clock.Advance(time.Minute)
	head := b.claim(9)
	b.keys(head, "m1")
	b.gap(head[0], false)
	b.complete(head...)
	b.gap(b.take("m2"), false)
}

func onePasses(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	head := b.take("m1")
	m3 := b.messageOf("m3")
	b.ok(b.amend(m3, store.MayPass))
	b.keys(b.claim(9)) // never while the head is leased
	b.retry(head, time.Minute)
	passing := b.claim(9)
	b.keys(passing, "m3")
	b.gap(passing[0], true)
	b.complete(passing...)
	b.keys(b.claim(9))
	b.clock.Advance(time.Minute)
	head = b.take("m1")
	b.gap(head, true) // it was overtaken
	b.complete(head)
	b.gap(b.take("m2"), true) // so was this
}

// blockedSince asks since when the longest blocked message is due. Followers of a dead head count,
// and marked messages whose head comes first. A message that is due later does not count.
func blockedSince(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	none := func() {
		b.Helper()
		if at := b.info().BlockedAt; !at.IsZero() {
			b.Fatalf("a message is blocked since %s, want none", at)
		}
	}
	since := func(want time.Time) {
		b.Helper()
		if at := b.info().BlockedAt; !at.Equal(want) {
			b.Fatalf("the longest blocked message is due since %s, want %s", at, want)
		}
	}
	began := b.clock.Now()
	b.inStream("m1")
	b.put("loose")
	b.put("m2", nixie.Stream("s"), nixie.Delay(2*time.Second))
	ds := b.claim(9)
	b.keys(ds, "m1", "loose")
	b.ok(b.settle(b.dying(ds[0], nixie.StatusOpen)))
	b.complete(ds[1])
	none()
	b.clock.Advance(time.Second)
	b.inStream("m3")
	since(began.Add(time.Second))
	b.clock.Advance(time.Hour)
	since(began.Add(time.Second))
	b.ok(b.amend(b.messageOf("m3"), store.MayPass))
	since(began.Add(2 * time.Second))
	b.ok(b.resolve(b.letterOf(ds[0].ID).ID, store.OnRedrive))
	since(began.Add(time.Second)) // the head comes first again
	b.complete(b.take("m1"))
	b.complete(b.take("m2"))
	none()
}

// markedWaits shows that a marked message passes a head that waits. Once the head is due, it comes
// first, and alone.
func markedWaits(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	b.retry(b.take("m1"), time.Minute)
	b.ok(b.amend(b.messageOf("m3"), store.MayPass))
	b.clock.Advance(time.Minute)
	b.put("other")
	same(b, "ready", b.info().Ready, 2)
	same(b, "blocked", b.info().Blocked, 2)
	if at := b.info().OldestAt; !at.Equal(b.clock.Now()) {
		b.Fatalf("oldest ready message is due since %s, want that of the head, %s", at, b.clock.Now())
	}
	ds := b.claim(9)
	b.keys(ds, "m1", "other")
	b.complete(ds...)
	b.complete(b.take("m2")) // m3 may pass a waiting head, and none waits
	b.take("m3")
}

// markedHead marks the head too. It comes first, and counts as ready.
func markedHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	b.retry(b.take("m1"), time.Minute)
	b.ok(b.amend(b.messageOf("m1"), store.MayPass))
	b.ok(b.amend(b.messageOf("m3"), store.MayPass))
	b.clock.Advance(time.Minute)
	same(b, "ready", b.info().Ready, 1)
	same(b, "blocked", b.info().Blocked, 2)
	if at := b.info().OldestAt; !at.Equal(b.clock.Now()) {
		b.Fatalf("oldest ready message is due since %s, want that of the head, %s", at, b.clock.Now())
	}
	for _, key := range []string{"m1", "m2", "m3"} {
		b.complete(b.take(key))
	}
}

// messageOf finds a message by its key.
func (b *fixture) messageOf(key string) nixie.ID {
	b.Helper()
	rs, _, err := b.st.Messages(b.ctx, nixie.Filter{Keys: []string{key}}, store.Page{})
	b.ok(err)
	if len(rs) != 1 {
		b.Fatalf("%d messages have the key %s, want 1", len(rs), key)
	}
	return rs[0].ID
}

func relaxedGo(b *fixture) {
	b.ordered(nixie.OrderRelaxed, "")
	b.inStream("m1", "m2", "m3")
	b.retry(b.take("m1"), time.Minute)
	for _, key := range []string{"m2", "m3"} {
		d := b.take(key)
		b.gap(d, true)
		b.complete(d)
	}
	b.keys(b.claim(9))
	b.clock.Advance(time.Minute)
	d := b.take("m1")
	b.gap(d, true)
	b.complete(d)
	if r := b.record(d.ID); !r.OrderGap || r.State != nixie.Succeeded {
		b.Fatalf("the log does not say that it ran out of order: %+v", r.Message)
	}
}

func deadHead(b *fixture) {
	for _, c := range []struct {
		order  nixie.Order
		dead   nixie.DeadHead
		verb   nixie.Verb
		blocks bool
	}{
		{nixie.OrderStrict, "", nixie.Bury, true},
		{nixie.OrderStrict, nixie.DeadBlocks, nixie.Hold, true},
		{nixie.OrderStrict, nixie.DeadFrees, nixie.Bury, false},
		{nixie.OrderStrict, nixie.DeadFrees, nixie.Hold, false},
		{nixie.OrderRelaxed, "", nixie.Bury, false},
	} {
		b.ordered(c.order, c.dead)
		b.inStream("m1", "m2")
		d := b.take("m1")
		s := b.dying(d, nixie.StatusOpen)
		s.Verb = c.verb
		b.ok(b.settle(s))
		if !c.blocks {
			follower := b.take("m2")
			b.gap(follower, true)
			b.complete(follower)
			b.emptyStreams()
			continue
		}
		b.keys(b.claim(9))
		if v := b.stream(); v.State != store.StreamBlocked || v.Head != d.ID || v.Followers != 1 || v.Letter != b.letterOf(d.ID).ID {
			b.Fatalf("stream is %+v", v)
		}
		same(b, "blocked", b.info().Blocked, 1)
		same(b, "unblocked", b.unblock(false), 1)
		follower := b.take("m2")
		b.gap(follower, true)
		b.complete(follower)
		b.emptyStreams()
	}
}

// emptyStreams discards all letters, so that the order may change.
func (b *fixture) emptyStreams() {
	b.Helper()
	for _, l := range b.letters(nixie.Filter{}) {
		if l.Status.Unresolved() {
			b.ok(b.resolve(l.ID, store.OnDiscard))
		}
	}
	_, err := store.FindStream(b.ctx, b.st.Features().Streams, work, "s")
	b.code(err, nixie.CodeNotFound)
}

func blockedStarvesNoOther(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("head")
	b.ok(b.settle(b.dying(b.take("head"), nixie.StatusOpen)))
	var ms []nixie.Message
	for i := range 1000 {
		ms = append(ms, message(fmt.Sprint("follower-", i), nixie.Stream("s"), nixie.Priority(nixie.MaxPriority)))
	}
	_, err := b.st.Enqueue(b.ctx, ms...)
	b.ok(err)
	b.put("none", nixie.Priority(nixie.MinPriority))
	b.put("other", nixie.Stream("t"), nixie.Priority(nixie.MinPriority))
	b.keys(b.claim(1), "none")
	b.keys(b.claim(9), "other")
	same(b, "followers", b.stream().Followers, 1000)
}

func siblings(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	b.retry(b.take("m1"), time.Minute)
	b.ok(b.amend(b.messageOf("m3"), store.MayPass))
	b.ok(b.settle(b.dying(b.take("m3"), nixie.StatusOpen))) // the last one dies first
	b.clock.Advance(time.Minute)
	for _, key := range []string{"m1", "m2"} {
		b.ok(b.settle(b.dying(b.take(key), nixie.StatusOpen)))
		b.unblock(false)
		b.clock.Advance(time.Second)
	}
	op, err := b.st.Plan(b.ctx, store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "because"}, nixie.Filter{}, 0)
	b.ok(err)
	found, err := store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: op.ID, Next: 9})
	letters := found.Next
	b.ok(err)
	for _, l := range letters {
		b.ok(b.resolution(store.Resolution{Letter: l, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}))
		b.clock.Advance(time.Second)
	}
	for _, key := range []string{"m1", "m2", "m3"} {
		b.complete(b.take(key))
	}
}

func priorityKeepsOrder(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.put("first", nixie.Stream("s"), nixie.Priority(-4))
	b.put("second", nixie.Stream("s"), nixie.Priority(4))
	b.complete(b.take("first"))
	b.complete(b.take("second"))
}

func abandonedHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	b.take("m1")
	b.clock.Advance(31 * time.Second)
	d := b.take("m1")
	same(b, "abandoned", d.Abandoned, true)
	b.retry(d, 0)
	b.complete(b.take("m1"))
	b.complete(b.take("m2"))
}

func scheduledHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.put("m1", nixie.Stream("s"), nixie.Delay(time.Hour))
	b.inStream("m2")
	b.keys(b.claim(9))
	b.ok(b.amend(b.messageOf("m1"), store.RetryNow))
	b.complete(b.take("m1"))
	b.complete(b.take("m2"))
}

func freedHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	d := b.take("m1")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.unblock(false)
	m2 := b.take("m2")
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	b.put("m4", nixie.Stream("s"))
	b.complete(m2)
	b.complete(b.take("m3"))
	again := b.take("m1")
	b.gap(again, true)
	b.complete(again)
	b.complete(b.take("m4"))
}

func redrivenHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	d := b.take("m1")
	for range 2 { // it dies twice, and blocks each time
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		b.keys(b.claim(9))
		b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
		d = b.take("m1")
		b.gap(d, false)
	}
	b.complete(d)
	b.gap(b.take("m2"), false)
}

func discardedHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	d := b.take("m1")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	b.ok(b.resolve(l.ID, store.OnDiscard))
	m2 := b.take("m2")
	b.gap(m2, false)
	b.ok(b.resolve(l.ID, store.OnRestore)) // too late to block again
	b.complete(m2)
	same(b, "state of the stream", b.stream().State, store.StreamIdle)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.gap(b.take("m1"), true)
}

func canceledHead(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2", "m3")
	b.ok(b.amend(b.messageOf("m1"), store.Cancel))
	b.ok(b.amend(b.take("m2").ID, store.Cancel))
	b.complete(b.take("m3"))
}

func releasedPasses(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	b.retry(b.take("m1"), time.Minute)
	id := b.messageOf("m2")
	b.ok(b.amend(id, store.MayPass))
	d := b.take("m2")
	same(b, "mark while leased", d.MayPass, false)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, MayPass: true}))
	d = b.take("m2")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	b.keys(b.claim(9)) // the mark is gone
}

func blockedFirst(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	for _, stream := range []string{"ready", "waiting", "blocked", "leased"} {
		b.put(stream, nixie.Stream(stream))
	}
	for _, d := range b.claim(9) {
		switch d.Key {
		case "ready":
			b.retry(d, 0)
		case "waiting":
			b.retry(d, time.Minute)
		case "blocked":
			b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		}
	}
	all, err := pages(func(p store.Page) ([]store.Stream, string, error) {
		p.Limit = 1
		return b.st.Features().Streams.Streams(b.ctx, store.StreamQuery{Queue: work}, p)
	})
	b.ok(err)
	var names []string
	for _, v := range all {
		same(b, "state", string(v.State), v.Name)
		names = append(names, v.Name)
	}
	if len(names) != 4 || names[0] != "blocked" || names[1] != "waiting" || !slices.Contains(names, "leased") {
		b.Fatalf("streams are listed as %v, want blocked and waiting ones first", names)
	}
	none, _, err := b.st.Features().Streams.Streams(b.ctx, store.StreamQuery{Queue: "nowhere"}, store.Page{})
	b.ok(err)
	same(b, "streams of an unknown queue", len(none), 0)
}

func unblockInvalid(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	b.inStream("m1", "m2")
	for _, c := range []struct {
		u    store.Unblocking
		code nixie.Code
	}{
		{store.Unblocking{Queue: work, Stream: "s", Actor: "ann"}, nixie.CodeInvalid},
		{store.Unblocking{Queue: work, Stream: "s", Reason: "r"}, nixie.CodeInvalid},
		{store.Unblocking{Queue: work, Actor: "ann", Reason: "r"}, nixie.CodeInvalid},
		{store.Unblocking{Queue: work, Stream: "x", Actor: "ann", Reason: "r"}, nixie.CodeNotFound},
		{store.Unblocking{Queue: "x", Stream: "s", Actor: "ann", Reason: "r"}, nixie.CodeNotFound},
		{store.Unblocking{Queue: work, Stream: "s", Actor: "ann", Reason: "r"}, nixie.CodeConflict},
	} {
		b.unchanged(func() {
			_, err := b.st.Features().Streams.Unblock(b.ctx, c.u)
			b.code(err, c.code)
		})
	}
	b.retry(b.take("m1"), time.Minute)
	same(b, "marked", b.unblock(true), 1)
	b.complete(b.take("m2"))
}

// passesRestored shows that a message has OrderGap when it is delivered behind a dead one that was
// discarded and then restored.
func passesRestored(b *fixture) {
	b.configure(nixie.QueueSettings{Order: nixie.OrderStrict})
	for i, before := range [...]bool{true, false} {
		stream := nixie.Stream(fmt.Sprint("t", i))
		held := b.put(fmt.Sprint("held", i), stream)
		hold := b.holding("look")
		hold.Free = true
		b.ok(b.change(held, hold))
		if before {
			b.put(fmt.Sprint("follower", i), stream)
		}
		b.ok(b.resolve(b.letterOf(held).ID, store.OnDiscard))
		if !before {
			b.put(fmt.Sprint("follower", i), stream)
		}
		b.ok(b.resolve(b.letterOf(held).ID, store.OnRestore))
		same(b, fmt.Sprint("gap ", before), b.take(fmt.Sprint("follower", i)).OrderGap, true)
	}
}

// unfinishedOfStream lists messages by their stream, in queues with an order and without: those
// that are queued and leased are found as in a list of all.
func unfinishedOfStream(b *fixture) {
	for queue, order := range map[string]nixie.Order{work: nixie.OrderStrict, "relaxed": nixie.OrderRelaxed, "loose": nixie.OrderNone} {
		b.ok(store.Configure(b.ctx, b.st, queue, nixie.QueueSettings{Order: order}, "ann", ""))
		for i := range 4 {
			for _, stream := range []string{"s", "t", ""} {
				b.put(fmt.Sprint(queue, i, stream), nixie.Queue(queue), nixie.Stream(stream))
			}
		}
		ds, err := b.st.Claim(b.ctx, queue, nixie.Want{Max: 3, Lease: time.Minute})
		b.ok(err)
		b.complete(ds[0])
	}
	all, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	same(b, "messages", len(all), 36)
	onWay := []nixie.State{nixie.Queued, nixie.Leased}
	for _, queues := range [][]string{nil, {work}, {"loose"}, {"relaxed", work}, {"loose", work}, {"none"}} {
		for _, streams := range [][]string{{"s"}, {"s", "t"}, {"t", ""}, {""}, {"none"}} {
			for _, states := range [][]nixie.State{onWay, onWay[:1], onWay[1:], nil} {
				f := nixie.Filter{Queues: queues, Streams: streams, States: states}
				want := 0
				for i := range all {
					if filter.MatchMessage(&f, &all[i].Message, "", b.clock.Now()) {
						want++
					}
				}
				got, err := allMessages(b.ctx, b.st, f)
				b.ok(err)
				same(b, fmt.Sprintf("messages of %+v", f), len(got), want)
			}
		}
	}
}
