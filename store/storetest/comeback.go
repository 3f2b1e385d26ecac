package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// later returns the letter as it is after a later death with a foreign broker, with this many more
// redrives.
func (b *fixture) later(l nixie.Letter, redrives int, text string) nixie.Letter {
	next := l
	next.Message.ID, next.Message.Origin, next.Message.DedupeKey = nixie.ID{}, nil, ""
	next.Message.Redrives += redrives
	next.Message.Generation += redrives
	next.Message.Attempts, next.Message.Deliveries, next.Message.Crashes = 2, 2, 0
	next.DiedAt = b.clock.Now()
	next.Message.EndedAt, next.LastFailedAt = next.DiedAt, next.DiedAt
	next.Cause, next.Class, next.Reason = nixie.CausePermanent, nixie.ClassPermanent, nixie.ReasonValidation
	next.Signature, next.Fingerprint, next.Rule = "other", "v1:bb", "validation"
	next.Redrivable, next.NeedsReview, next.Note = false, true, "again"
	f := nixie.Failure{Generation: next.Message.Generation, Attempt: 2, FailedAt: next.DiedAt, Class: next.Class, Reason: next.Reason,
		Text: text, Decision: nixie.Bury}
	next.History, next.HistoryDropped = append(slices.Clone(l.History), f), l.HistoryDropped
	return next
}

// diesElsewhere shows that a letter stays the same letter when a broker took its message and the
// message died there. It makes no difference whether the store or the broker redrove it. A repeat
// changes nothing.
func diesElsewhere(b *fixture) {
	ways := map[string]func(nixie.ID){
		"confirmed": func(id nixie.ID) { b.ok(b.resolve(id, store.OnConfirm)) },
		"unseen":    func(nixie.ID) {},
		"discarded": func(id nixie.ID) { b.ok(b.resolve(id, store.OnDiscard)) },
	}
	for way, before := range ways {
		for _, status := range []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined} {
			l := b.adopted(b.foreign(way + " " + string(status)))
			before(l.ID)
			b.clock.Advance(time.Minute)
			next := b.later(l, 1, "worse")
			next.Status = status
			b.comesBack(l, next)
			b.unchanged(func() {
				again, err := b.buryOne(next)
				b.ok(err)
				same(b, "repeat", again, nixie.Receipt{ID: l.ID, Duplicate: true})
			})
		}
	}
}

// comesBack adopts a later death of a letter and compares the letter and message afterwards.
func (b *fixture) comesBack(l, next nixie.Letter) {
	b.Helper()
	r, err := b.buryOne(next)
	b.ok(err)
	same(b, "receipt", r, nixie.Receipt{ID: l.ID})
	got := b.letter(l.ID)
	same(b, "status", got.Status, next.Status)
	same(b, "message", got.Message.ID, l.Message.ID)
	same(b, "state", got.Message.State, nixie.Dead)
	same(b, "body", string(got.Message.Body), string(l.Message.Body))
	same(b, "redrives", got.Message.Redrives, next.Message.Redrives)
	same(b, "generation", got.Message.Generation, next.Message.Generation)
	same(b, "attempts", got.Message.Attempts, 2)
	same(b, "failures", len(got.History)+got.HistoryDropped, len(l.History)+l.HistoryDropped+1)
	same(b, "first failure", got.History[0].Text, l.History[0].Text)
	same(b, "last failure", got.History[len(got.History)-1].Text, "worse")
	same(b, "signature", got.Signature, "other")
	same(b, "needs review", got.NeedsReview, true)
	same(b, "died", got.DiedAt.Equal(next.DiedAt), true)
	same(b, "first failed", got.FirstFailedAt.Equal(l.FirstFailedAt), true)
	same(b, "resolved", got.ResolvedAt.IsZero(), true)
	same(b, "revision grows", got.Revision > l.Revision, true)
	counts, _, err := b.st.Count(b.ctx, nixie.Filter{IDs: []nixie.ID{l.ID}, Statuses: []nixie.Status{next.Status}},
		store.Counting{By: []store.GroupBy{store.ByStatus}})
	b.ok(err)
	same(b, "counted", store.Sizes(counts[0])[string(next.Status)], int64(1))
}

// diesElsewhereTooLate refuses deaths that are not later: one before the last redrive, and one of a
// message that is queued or leased here.
func diesElsewhereTooLate(b *fixture) {
	l := b.adopted(b.foreign("k"))
	b.ok(b.resolve(l.ID, store.OnConfirm))
	duplicate := func(redrives int) {
		b.Helper()
		b.unchanged(func() {
			r, err := b.buryOne(b.later(l, redrives, "late"))
			b.ok(err)
			same(b, "receipt", r, nixie.Receipt{ID: l.ID, Duplicate: true})
		})
	}
	duplicate(0)
	next := b.later(l, 1, "worse")
	b.comesBack(l, next)
	b.ok(b.st.Resolve(b.ctx, []store.Resolution{{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "r", Force: true}})[0])
	duplicate(2)
}

// diesElsewhereOutOfItsStream shows a message after a death elsewhere. It has left its stream and
// holds its key, and each delivery counted as a lease. Its history is kept even if little is known
// of the later generation.
func diesElsewhereOutOfItsStream(b *fixture) {
	b.configure(nixie.QueueSettings{Order: nixie.OrderStrict, DedupeScope: nixie.DedupeActive})
	l := b.dead("head", nixie.StatusOpen, nixie.Stream("s"), nixie.DedupeKey("k"))
	b.configure(nixie.QueueSettings{Order: nixie.OrderStrict, DedupeScope: nixie.DedupeUnresolved})
	b.put("follower", nixie.Stream("s"))
	same(b, "claimed behind the dead", len(b.claim(9)), 0)
	next := b.later(l, 1, "")
	next.History, next.Class, next.Reason = nil, "", ""
	next.Message.Deliveries, next.Message.Attempts = 5, 5
	r, err := b.buryOne(next)
	b.ok(err)
	same(b, "receipt", r, nixie.Receipt{ID: l.ID})
	got := b.letter(l.ID)
	same(b, "failures", len(got.History), 1)
	f := got.History[0]
	same(b, "failure", fmt.Sprint(f.Class, f.Reason, f.Text, f.FailedAt.Equal(l.LastFailedAt)),
		fmt.Sprint(nixie.ClassUnknown, nixie.ReasonHandler, "it fails", true))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("follower"), Verb: nixie.Complete}))
	streams, _, err := b.st.Features().Streams.Streams(b.ctx, store.StreamQuery{Queue: work}, store.Page{})
	b.ok(err)
	same(b, "streams", len(streams), 0)
	b.again(l.Message.ID)

	b.ok(b.resolve(l.ID, store.OnDiscard))
	b.ok(b.resolve(l.ID, store.OnRestore))
	streams, _, err = b.st.Features().Streams.Streams(b.ctx, store.StreamQuery{Queue: work}, store.Page{})
	b.ok(err)
	same(b, "streams after it was restored", len(streams), 0)
}
