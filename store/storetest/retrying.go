package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

func retryingClauses() []clause {
	return []clause{
		{"TalliesMatchARecount", retryingMatches},
		{"CountsFollowAMessage", retryingFollows},
		{"AnUnknownPropertyIsInvalid", unknownRetrying},
		{"MessagesOnTheirWayAreFound", onTheirWay},
	}
}

// retryingOnes brings n messages into random states.
func (b *fixture) retryingOnes(n int, random *rand.Rand) {
	b.Helper()
	for i := range n {
		b.put(fmt.Sprint(i), nixie.Queue(pick(random, work, "other")), nixie.Delay(time.Duration(random.IntN(2))*time.Hour))
	}
	for range 4 * n {
		for _, d := range b.someOf(pick(random, work, "other"), 2) {
			f := b.failure(d, pick(random, "refused", "no such file"))
			f.Reason = pick(random, nixie.ReasonTimeout, nixie.ReasonHandler, nixie.ReasonDependency)
			s := nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: f, Delay: time.Duration(random.IntN(90)) * time.Minute,
				Burial: burial("")}
			switch random.IntN(12) {
			case 0:
				s.Verb, s.Failure = nixie.Release, nil
			case 1:
				s.Verb = nixie.Bury
			case 2:
				s.Verb, s.Failure = nixie.Complete, nil
			case 3:
				continue // it stays leased, and is abandoned later
			}
			b.ok(b.settle(s))
		}
		b.clock.Advance(time.Duration(random.IntN(3)) * time.Minute)
	}
	for i, l := range b.letters(nixie.Filter{}) {
		if i%3 == 0 {
			b.ok(b.resolve(l.ID, store.OnRedrive))
		}
	}
	b.someOf(work, 5)
}

func (b *fixture) someOf(queue string, n int) []*nixie.Delivery {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, queue, nixie.Want{Max: n, Lease: 30 * time.Minute})
	b.ok(err)
	return ds
}

// retryingFilters returns filters that counters can answer, and some that they cannot.
func (b *fixture) retryingFilters() []nixie.Filter {
	two, three := int64(2), int64(3)
	return []nixie.Filter{
		{}, {Queues: []string{work}}, {Queues: []string{"none"}}, {States: []nixie.State{nixie.Leased}},
		{States: []nixie.State{nixie.Queued}},
		{States: []nixie.State{nixie.Dead}}, {Reasons: []nixie.Reason{nixie.ReasonTimeout, nixie.ReasonPanic}},
		{Attempts: nixie.Range{Min: &two}},
		{Attempts: nixie.Range{Max: &two}, Queues: []string{work, "other"}, States: []nixie.State{nixie.Queued, nixie.Leased}},
		{Text: "REFUSED"}, {Types: []string{"test"}, Attempts: nixie.Range{Min: &three}}, {Types: []string{"no"}},
		{Crashes: nixie.Range{Max: &two}}, {Due: nixie.Times{After: b.clock.Now().Add(10 * time.Minute)}},
		{Statuses: []nixie.Status{nixie.StatusOpen}},
	}
}

func retryingMatches(b *fixture) {
	b.retryingOnes(60, rand.New(rand.NewPCG(11, 12)))
	all, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	keys := map[store.GroupBy]func(*nixie.Message) string{
		store.ByAttempts: func(m *nixie.Message) string { return strconv.Itoa(m.Attempts) },
		store.ByReason:   func(m *nixie.Message) string { return string(m.LastReason) },
		store.ByType:     func(m *nixie.Message) string { return m.Type },
		store.ByQueue:    func(m *nixie.Message) string { return m.Queue },
	}
	same(b, "groupings", len(keys), len(store.RetryingBy()))
	seen := 0
	for _, f := range b.retryingFilters() {
		for by, key := range keys {
			counts := map[string]store.Group{}
			for i := range all {
				m := &all[i].Message
				if !m.Retrying() || !filter.MatchMessage(&f, m, "", b.clock.Now()) {
					continue
				}
				c := counts[key(m)]
				c.Key = key(m)
				c.Count++
				if m.State == nixie.Leased {
					c.Leased++
				}
				counts[key(m)] = c
				seen++
			}
			want := make([]store.Group, 0, len(counts))
			for _, c := range counts {
				want = append(want, c)
			}
			store.SortGroups(want)
			got, _, err := b.st.Count(b.ctx, f, store.Counting{By: []store.GroupBy{by}, Retrying: true})
			b.ok(err)
			if !slices.EqualFunc(got[0], want, sameSize) {
				b.Fatalf("messages that retry, of %q by %s are %+v, want %+v", filter.Text(f), by, got, want)
			}
		}
	}
	if seen < 200 {
		b.Fatalf("only %d messages were counted", seen)
	}
}

func sameSize(a, b store.Group) bool {
	return a.Key == b.Key && a.Count == b.Count && a.Leased == b.Leased
}

// retryingFollows follows one message through its generations.
func retryingFollows(b *fixture) {
	is := func(want ...store.Group) {
		b.Helper()
		got, _, err := b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByAttempts}, Retrying: true})
		b.ok(err)
		if !slices.EqualFunc(got[0], want, sameSize) {
			b.Fatalf("messages that retry are %+v, want %+v", got, want)
		}
	}
	letters := func(attempts string) {
		b.Helper()
		counted, _, err := b.st.Count(b.ctx, nixie.Filter{},
			store.Counting{By: []store.GroupBy{store.ByAttempts}, Scan: store.ScanAll, Described: true})
		b.ok(err)
		groups := counted[0]
		if len(groups) != 1 || groups[0].Key != attempts || groups[0].Count != 1 {
			b.Fatalf("letters by attempts are %+v, want one with %s", groups, attempts)
		}
	}
	d := b.took("a")
	is() // it has not failed yet
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "x")}))
	is(store.Group{Key: "1", Count: 1})
	b.take("a")
	is(store.Group{Key: "2", Count: 1, Leased: 1})
	b.clock.Advance(time.Minute)
	d = b.take("a") // to be judged: no attempt, and the attempt that vanished does not count
	is(store.Group{Key: "1", Count: 1, Leased: 1})
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	is()
	letters("1")
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	is() // its new generation has not begun
	letters("0")
	d = b.take("a")
	is(store.Group{Key: "1", Count: 1, Leased: 1})
	letters("0") // until its message has ended
	same(b, "letters on their way that are found by attempts", len(b.letters(nixie.Filter{Attempts: nixie.Range{Min: new(int64(1))}})), 0)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	letters("0")
	d = b.take("a")
	same(b, "reason", b.record(d.ID).LastReason, nixie.ReasonHandler)
	same(b, "leased since", b.record(d.ID).LeasedAt, b.clock.Now())
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	is()
	letters("1")
}

func unknownRetrying(b *fixture) {
	for _, by := range []store.GroupBy{"", store.ByHour, store.ByFingerprint} {
		_, _, err := b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{by}, Retrying: true})
		b.code(err, nixie.CodeInvalid)
	}
}

// onTheirWay lists messages by properties for which a store may have an index.
func onTheirWay(b *fixture) {
	random := rand.New(rand.NewPCG(13, 14))
	b.retryingOnes(40, random)
	all, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	one, two := int64(1), int64(2)
	queued, leased := []nixie.State{nixie.Queued}, []nixie.State{nixie.Leased}
	for _, f := range []nixie.Filter{
		{States: queued, Attempts: nixie.Range{Min: &one}}, {States: queued, Attempts: nixie.Range{Min: &two}}, {States: leased},
		{States: append(queued, leased...), Crashes: nixie.Range{Min: &one}},
		{States: append(queued, leased...), Attempts: nixie.Range{Min: &one}},
		{States: queued, Due: nixie.Times{After: b.clock.Now().Add(20 * time.Minute)}},
		{States: queued, Due: nixie.Times{Before: b.clock.Now().Add(20 * time.Minute)}},
		{States: append(leased, queued...), Reasons: []nixie.Reason{nixie.ReasonTimeout}},
		{States: leased, Queues: []string{"other"}, Attempts: nixie.Range{Max: &one}},
		{States: append(leased, nixie.Dead), Attempts: nixie.Range{Min: &two}},
	} {
		want := 0
		for i := range all {
			if filter.MatchMessage(&f, &all[i].Message, "", b.clock.Now()) {
				want++
			}
		}
		got, err := allMessages(b.ctx, b.st, f)
		b.ok(err)
		same(b, fmt.Sprintf("messages of filter %q", filter.Text(f)), len(got), want)
		for i := range got {
			if !filter.MatchMessage(&f, &got[i].Message, "", b.clock.Now()) || want == 0 {
				b.Fatalf("filter %q gave %+v", filter.Text(f), got[i])
			}
		}
	}
}
