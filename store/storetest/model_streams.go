package storetest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// reorder changes the order of a queue. A store refuses a change between an order and none while
// messages are queued or leased. A store may or may not have ended a lease that is over, so the
// machine ends all of them before.
func (m *machine) reorder(r *rapid.T) {
	queue, before := m.queue(r), m.order
	p := m.processes[0]
	for _, other := range m.others("") {
		m.claimFrom(p, other, nixie.Want{Max: 1})
	}
	m.vanished = nil
	m.order = map[string]nixie.QueueSettings{"a": before["a"], "b": before["b"]}
	m.order[queue] = m.ordering(r)
	s := keeping(m.order[queue])
	s.DedupeScope, s.Lease = m.scope, before[queue].Lease
	err := store.Configure(m.ctx, p.sut, queue, s, "ann", "r")
	m.sameCode("configure another order", err, store.Configure(m.ctx, p.ref, queue, s, "ann", "r"))
	if err != nil {
		m.order = before
	}
}

func (m *machine) unblock(r *rapid.T) {
	p := m.process(r)
	u := store.Unblocking{
		Queue: m.queue(r), Stream: rapid.SampledFrom([]string{"s", "t", "x"}).Draw(r, "stream"), Mark: rapid.Bool().Draw(r, "mark"),
		Actor: "ann", Reason: rapid.SampledFrom([]string{"why", "why", ""}).Draw(r, "reason"),
	}
	if slices.Contains(m.others(""), u.Queue) {
		r.Skip("the head may be leased or waiting, as the store likes")
	}
	sut, err := p.sut.Features().Streams.Unblock(m.ctx, u)
	ref, want := p.ref.Features().Streams.Unblock(m.ctx, u)
	m.sameCode("unblock", err, want)
	m.same("unblocked", sut, ref)
}

// compareStreams compares the listing of streams, except the order of streams that do not block,
// and each stream alone.
func (m *machine) compareStreams(p *process, skip map[string]bool) {
	for _, queue := range modelQueues {
		if skip[queue] {
			continue
		}
		sut, ref := m.seeStreams(0, p.sut, queue), m.seeStreams(1, p.ref, queue)
		m.same("streams of "+queue, sut, ref)
	}
}

func (m *machine) seeStreams(side int, st store.Store, queue string) []string {
	all, err := pages(func(page store.Page) ([]store.Stream, string, error) {
		page.Limit = 1
		return st.Features().Streams.Streams(m.ctx, store.StreamQuery{Queue: queue}, page)
	})
	if err != nil {
		m.Fatal(err)
	}
	var letters []nixie.Letter
	if slices.ContainsFunc(all, func(v store.Stream) bool { return !v.Letter.IsZero() }) {
		if letters, err = allLetters(m.ctx, st, nixie.Filter{}); err != nil {
			m.Fatal(err)
		}
	}
	var seen []string
	for i, v := range all {
		if i > 0 && v.State == store.StreamBlocked && all[i-1].State != store.StreamBlocked {
			m.Fatalf("stream %q is blocked and comes after %q, which is not", v.Name, all[i-1].Name)
		}
		alone, err := store.FindStream(m.ctx, st.Features().Streams, queue, v.Name)
		if err != nil {
			m.Fatal(err)
		}
		m.same("stream alone", alone, v)
		letter := ""
		if i := slices.IndexFunc(letters, func(l nixie.Letter) bool { return l.ID == v.Letter }); i >= 0 {
			letter = fmt.Sprint("letter of ", m.name(side, letters[i].Message.ID))
		}
		seen = append(seen, fmt.Sprint(v.Queue, v.Name, v.State, " head ", m.name(side, v.Head), letter, at(v.Due), v.LeasedBy, v.Attempts,
			v.Failure,
			" followers ", v.Followers, v.Passing, v.Dead))
	}
	slices.Sort(seen)
	return seen
}
