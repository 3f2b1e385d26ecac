package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func noticeClauses() []clause {
	return []clause{
		{"ADeathIsNoticedWithIt", noticed},
		{"AnOperatorsHoldIsNoticed", noticedHold},
		{"ANoticeIsOnlyConsumedItself", noticeConsumed},
		{"ADeadNoticeGoesOn", noticeGoesOn},
		{"ABodyThatHasNoRoomIsLeftOut", noticeOfLarge},
		{"WaysOfNoticesHaveAnEnd", noticeWays},
		{"ANoticeComesBeforeWhatFollows", noticeFirst},
	}
}

// notices lets the queue work send the notices of its deaths to the queue next.
func (b *fixture) notices() {
	b.Helper()
	b.configure(nixie.QueueSettings{DeadLetterTo: next})
}

// noticesIn claims and completes what is in a queue of notices.
func (b *fixture) noticesIn(queue string, n int) []store.Notice {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, queue, nixie.Want{Max: 100, Lease: 30 * time.Second})
	b.ok(err)
	same(b, "notices", len(ds), n)
	list := make([]store.Notice, n)
	for i, d := range ds {
		same(b, "type", d.Type, nixie.TypeDeadLetter)
		b.ok(json.Unmarshal(d.Body, &list[i]))
		same(b, "request ID", d.Header(nixie.HeaderRequestID), list[i].RequestID)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
	return list
}

// noticeFirst settles two deaths in one call, each with a message that follows into the queue of
// the notices: of each, the notice comes first.
func noticeFirst(b *fixture) {
	b.notices()
	b.put("1")
	b.put("2")
	ds := b.claim(2)
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		sts[i] = b.dying(d, nixie.StatusOpen)
		sts[i].Then = []nixie.Message{{Queue: next, Type: "after", Body: d.Body}}
	}
	for _, err := range b.st.Settle(b.ctx, sts) {
		b.ok(err)
	}
	got, err := b.st.Claim(b.ctx, next, nixie.Want{Max: 10, Lease: 30 * time.Second})
	b.ok(err)
	var types []string
	for _, d := range got {
		types = append(types, d.Type)
	}
	same(b, "order", strings.Join(types, " "), strings.Join([]string{nixie.TypeDeadLetter, "after", nixie.TypeDeadLetter, "after"}, " "))
}

func noticed(b *fixture) {
	b.notices()
	enqueued := b.clock.Now()
	b.put("bury", nixie.WithHeader(nixie.HeaderRequestID, "r"), nixie.WithHeader(store.HeaderReplyTo, "answers"))
	b.put("second")
	b.put("halt")
	b.put("complete")
	b.clock.Advance(time.Second)
	ds := b.claim(4)
	received := b.clock.Now()
	b.clock.Advance(time.Second)
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		sts[i] = b.dying(d, nixie.StatusOpen)
	}
	second := b.failure(ds[1], "the decider failed")
	second.Type = "storetest.Second"
	sts[1].Second, sts[2].Verb, sts[3] = second, nixie.Halt, nixie.Settlement{Delivery: ds[3], Verb: nixie.Complete}
	for _, err := range b.st.Settle(b.ctx, sts) {
		b.ok(err)
	}
	list := b.noticesIn(next, 3)
	for i, n := range list {
		same(b, "message", n.MessageID, ds[i].ID)
		same(b, "generation", n.Generation, 1)
		same(b, "source", n.SourceMailbox, work)
		same(b, "body", string(n.Raw), string(ds[i].Body))
		same(b, "attempts", n.DeliveryCount, 1)
		same(b, "death", n.DeadLetteredAt.Equal(b.clock.Now()), true)
		same(b, "first receipt", n.FirstReceivedAt.Equal(received), true)
		same(b, "acceptance", n.EnqueuedAt.Equal(enqueued), true)
	}
	same(b, "request", list[0].RequestID+" "+list[0].ReplyTo, "r answers")
	same(b, "error", list[0].LastErrorType+": "+list[0].LastError, "storetest.Error: it fails")
	same(b, "error", list[1].LastErrorType+": "+list[1].LastError, "storetest.Second: the decider failed")
	same(b, "failures of which two are told", len(b.letterOf(ds[1].ID).History), 2)
	same(b, "pause", b.info().Settings.Paused, true)
	b.notices() // and not paused
	b.ok(b.resolve(b.letterOf(ds[0].ID).ID, store.OnRedrive))
	b.ok(b.settle(b.dying(b.take("bury"), nixie.StatusOpen)))
	later := b.noticesIn(next, 1)[0]
	same(b, "another death of", later.MessageID, ds[0].ID)
	same(b, "generation", later.Generation, 2)
	adopted := b.adopted(b.foreign("foreign"))
	b.status(adopted.ID, nixie.StatusOpen)
	b.noticesIn(next, 0)
	again := b.took("again")
	b.ok(b.settle(nixie.Settlement{Delivery: again, Verb: nixie.Retry, Failure: b.failure(again, "the first time")}))
	silent := b.dying(b.take("again"), nixie.StatusOpen)
	silent.Failure = nil
	b.ok(b.settle(silent))
	same(b, "newest error", b.noticesIn(next, 1)[0].LastError, "the first time")
}

func noticedHold(b *fixture) {
	b.notices()
	id := b.put("a")
	b.ok(b.change(id, b.holding("it looks wrong")))
	n := b.noticesIn(next, 1)[0]
	same(b, "message", n.MessageID, id)
	same(b, "error", n.LastError, "held")
	b.sound()
}

func noticeConsumed(b *fixture) {
	b.notices()
	l := b.dead("a", nixie.StatusOpen)
	b.unchangedLetter(l.ID, func() { b.noticesIn(next, 1) })
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.complete(b.take("a"))
	b.status(l.ID, nixie.StatusResolved)
}

// unchangedLetter expects that a letter is the same afterwards.
func (b *fixture) unchangedLetter(id nixie.ID, f func()) {
	b.Helper()
	before := b.letter(id)
	f()
	after := b.letter(id)
	same(b, "status", after.Status, before.Status)
	same(b, "revision", after.Revision, before.Revision)
}

func noticeGoesOn(b *fixture) {
	b.notices()
	b.ok(store.Configure(b.ctx, b.st, next, nixie.QueueSettings{DeadLetterTo: "last"}, "ann", "r"))
	died := b.dead("a", nixie.StatusOpen).Message.ID
	ds, err := b.st.Claim(b.ctx, next, nixie.Want{Max: 1, Lease: 30 * time.Second})
	b.ok(err)
	b.ok(b.settle(b.dying(ds[0], nixie.StatusOpen)))
	of := b.noticesIn("last", 1)[0]
	same(b, "message", of.MessageID, ds[0].ID)
	var first store.Notice
	b.ok(json.Unmarshal(of.Body, &first))
	same(b, "first message", first.MessageID, died)
	b.sound()
}

func noticeOfLarge(b *fixture) {
	b.notices()
	m := message("a")
	m.Body = bytes.Repeat([]byte{0}, nixie.MaxBody)
	_, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	n := b.noticesIn(next, 1)[0]
	same(b, "bytes of the body", len(n.Raw), 0)
	same(b, "error", n.LastError, "it fails")
}

func noticeWays(b *fixture) {
	set := func(queue string, s nixie.QueueSettings) error {
		return store.Configure(b.ctx, b.st, queue, s, "ann", "r")
	}
	to := func(queue string) nixie.QueueSettings { return nixie.QueueSettings{DeadLetterTo: queue} }
	b.code(set("a", to("a")), nixie.CodeConflict)
	b.code(set("a", to("no\x00name")), nixie.CodeInvalid)
	b.ok(set("a", to("b")))
	b.ok(set("b", to("c")))
	b.code(set("c", to("a")), nixie.CodeConflict)
	b.code(set("c", to("b")), nixie.CodeConflict)
	b.code(set("c", nixie.QueueSettings{Closed: true}), nixie.CodeConflict)
	b.code(set("d", nixie.QueueSettings{Closed: true, DeadLetterTo: "d"}), nixie.CodeConflict)
	b.ok(set("d", nixie.QueueSettings{Closed: true}))
	b.code(set("c", to("d")), nixie.CodeConflict)
	b.ok(set("a", nixie.QueueSettings{}))
	b.ok(set("c", to("a")))
}
