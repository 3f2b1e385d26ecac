package storetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// adopt adopts letters of messages that died elsewhere: new ones, some of them twice, and later
// deaths of messages of the stores.
func (m *machine) adopt(r *rapid.T) {
	p := m.process(r)
	here := m.lettersOf(p)
	var sut, ref []nixie.Letter
	for i := range rapid.IntRange(1, 2).Draw(r, "letters") {
		x := m.foreign(r, fmt.Sprintf("foreign %d.%d", len(m.ids), i))
		y := x
		if len(here) > 0 && rapid.Bool().Draw(r, "is here") {
			pair := rapid.SampledFrom(here).Draw(r, "letter")
			x.ID, y.ID = pair[0].ID, pair[1].ID
			x.Message.ID, x.Message.Origin = nixie.ID{}, nil
			x.Message.Generation = pair[1].Message.Generation + rapid.IntRange(0, 1).Draw(r, "later generations")
			for i := range x.History {
				x.History[i].Generation = x.Message.Generation
			}
			y.Message = x.Message
		} else if len(here) > 0 && rapid.Bool().Draw(r, "was sent from here") {
			pair := rapid.SampledFrom(here).Draw(r, "letter that was sent")
			name := fmt.Sprintf("job %d.%d", len(m.ids), i)
			x.Message.Origin = &nixie.Origin{System: "jobs", MessageID: name, Earlier: pair[0].ID}
			y.Message.Origin = &nixie.Origin{System: "jobs", MessageID: name, Earlier: pair[1].ID}
		}
		if len(m.plans) > 0 && rapid.Bool().Draw(r, "redriven") {
			of := rapid.SampledFrom(m.plans).Draw(r, "by operation")
			x.Operation, y.Operation = of.ids[0], of.ids[1]
		}
		sut, ref = append(sut, x), append(ref, y)
	}
	got, errs := p.sut.Adopt(m.ctx, sut, "bob", "found")
	want, expected := p.ref.Adopt(m.ctx, ref, "bob", "found")
	m.sameCodes("bury from elsewhere", errs, expected)
	for i := range want {
		m.same("receipt", seeReceipt(0, got[i]), seeReceipt(0, want[i]))
		if id := ref[i].Message.ID; expected[i] == nil && !want[i].Duplicate && !id.IsZero() {
			m.made(id, id)
		}
	}
}

// foreign draws a letter of a message that died elsewhere. The ID of the message depends on the
// name.
func (m *machine) foreign(r *rapid.T, name string) nixie.Letter {
	now, hash := m.clock.Now(), nixie.HashBody([]byte(name))
	l := nixie.Letter{
		Message: nixie.Message{
			ID: nixie.ID(hash[:16]), Queue: m.queue(r), Type: rapid.SampledFrom([]string{"t", "u", ""}).Draw(r, "type"),
			Body:      []byte("from elsewhere"),
			DedupeKey: rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "key"),
			Stream:    rapid.SampledFrom([]string{"", "s"}).Draw(r, "stream"),
			Attempts:  2, Deliveries: 3, Crashes: rapid.IntRange(0, 1).Draw(r, "crashes"),
			Redrives: rapid.IntRange(0, 1).Draw(r, "redrives"), EnqueuedAt: now, FirstReceivedAt: now,
			Generation: 1,
		},
		Cause: nixie.CauseAdopted, Fingerprint: "v1:a",
		DiedAt: now.Add(rapid.SampledFrom([]time.Duration{0, -time.Second, -time.Hour}).Draw(r, "died")),
		Status: rapid.SampledFrom([]nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined,
			nixie.StatusResolved}).Draw(r, "status"),
		Redrivable: rapid.Bool().Draw(r, "redrivable"), NeedsReview: rapid.Bool().Draw(r, "needs review"),
	}
	if n := rapid.IntRange(-1, 3).Draw(r, "origin"); n >= 0 {
		l.Message.Origin = &nixie.Origin{System: "kafka", Channel: "c", MessageID: fmt.Sprint(n)}
	}
	if in := rapid.SampledFrom([]time.Duration{0, 0, -time.Minute, time.Minute}).Draw(r, "expires"); in != 0 {
		l.Message.ExpiresAt = now.Add(in)
	}
	if l.Message.Redrives > 0 {
		l.Message.RedrivenAt = now
	}
	for i := range rapid.IntRange(0, 2).Draw(r, "failures") {
		l.Class, l.Reason = nixie.ClassTransient, nixie.ReasonTimeout
		l.FirstFailedAt, l.LastFailedAt = l.DiedAt, l.DiedAt
		l.History = append(l.History, nixie.Failure{
			Generation: 1, Attempt: i + 1, StartedAt: l.DiedAt, FailedAt: l.DiedAt, Class: l.Class, Reason: l.Reason,
			Text:     fmt.Sprint("elsewhere ", i),
			Decision: rapid.SampledFrom([]nixie.Verb{nixie.Retry, nixie.Bury}).Draw(r, "decision"),
		})
	}
	return l
}

// purge cancels queued messages. When a lease is over the stores may differ in whether its message
// is queued already, so the machine leaves such a queue alone.
func (m *machine) purge(r *rapid.T) {
	p, queue := m.process(r), m.queue(r)
	if slices.Contains(m.others(""), queue) {
		r.Skip("a lease is over")
	}
	f := rapid.SampledFrom([]nixie.Filter{{}, {Types: []string{"t"}}, {Age: nixie.Durations{Min: time.Second}}}).Draw(r, "filter")
	most := rapid.SampledFrom([]int{-1, 1, 3, 100}).Draw(r, "most")
	sut, err := p.sut.Purge(m.ctx, queue, f, most, "ann", "why")
	ref, want := p.ref.Purge(m.ctx, queue, f, most, "ann", "why")
	m.sameCode("purge", err, want)
	m.same("purged", sut, ref)
}

// adjust pauses, closes or opens a queue, or changes its dedupe scope.
func (m *machine) adjust(r *rapid.T) {
	p, queue := m.process(r), m.queue(r)
	paused, closed := rapid.Bool().Draw(r, "paused"), rapid.Bool().Draw(r, "closed")
	scope := rapid.SampledFrom([]nixie.DedupeScope{m.scope, nixie.DedupeQueued, nixie.DedupeActive, nixie.DedupeUnresolved,
		nixie.DedupeEver}).Draw(r, "scope")
	refused := rapid.SampledFrom([]error{nil, nil, nixie.Errorf(nixie.CodeConflict, "no")}).Draw(r, "refused")
	edit := func(s *nixie.QueueSettings) error {
		s.Paused, s.Closed, s.DedupeScope = paused, closed, scope
		return refused
	}
	sut, err := p.sut.Adjust(m.ctx, queue, "ann", "why", edit)
	ref, want := p.ref.Adjust(m.ctx, queue, "ann", "why", edit)
	m.sameCode("adjust", err, want)
	sut.PausedNote, ref.PausedNote = m.seeNote(0, sut), m.seeNote(1, ref)
	m.same("settings", sut, ref)
}

// regroup gives some letters another group.
func (m *machine) regroup(r *rapid.T) {
	p := m.process(r)
	here := m.lettersOf(p)
	if len(here) == 0 {
		r.Skip("no letters")
	}
	sut := store.Regrouping{Actor: rapid.SampledFrom([]string{"", "ann"}).Draw(r, "actor"), DryRun: rapid.Bool().Draw(r, "dry")}
	ref := sut
	for range rapid.IntRange(1, 3).Draw(r, "letters") {
		pair := rapid.SampledFrom(here).Draw(r, "letter")
		for i := range pair {
			pair[i].Signature, pair[i].Fingerprint = "new", "v1:new"
		}
		sut.Letters, ref.Letters = append(sut.Letters, pair[0]), append(ref.Letters, pair[1])
	}
	m.sameCodes("regroup", p.sut.Features().Regroup(m.ctx, sut), p.ref.Features().Regroup(m.ctx, ref))
}

// retrying compares the counts of messages that retry.
func (m *machine) retrying(r *rapid.T) {
	p := m.process(r)
	if len(m.others("")) > 0 {
		r.Skip("a lease is over")
	}
	f := rapid.SampledFrom([]nixie.Filter{{}, {Queues: []string{"a"}}, {Types: []string{"t"}},
		{Reasons: []nixie.Reason{nixie.ReasonTimeout}}}).Draw(r, "filter")
	by := rapid.SampledFrom(store.RetryingBy()).Draw(r, "by")
	sut, _, err := p.sut.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by}, Retrying: true})
	ref, _, want := p.ref.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by}, Retrying: true})
	m.sameCode("count of what retries", err, want)
	m.same("messages that retry by "+string(by), sut, ref)
}

// search compares the results of an audit query.
func (m *machine) search(r *rapid.T) {
	p := m.process(r)
	f := rapid.SampledFrom([]store.AuditFilter{
		{Events: []store.Event{store.OnRedrive, store.OnBury}}, {Actor: "bob"}, {Since: m.clock.Now()}, {Until: m.clock.Now()},
	}).Draw(r, "filter")
	f.Queues, f.Oldest = []string{m.queue(r)}, rapid.Bool().Draw(r, "oldest")
	var seen [2][]string
	for side, st := range []store.Store{p.sut, p.ref} {
		entries, err := pages(func(at store.Page) ([]store.AuditEntry, string, error) { return st.Audit(m.ctx, f, at) })
		if err != nil {
			m.Fatal(err)
		}
		seen[side] = m.seeEntries(side, st, entries)
	}
	m.same(fmt.Sprintf("entries that match %+v", f), seen[0], seen[1])
}
