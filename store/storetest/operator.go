package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func operatorClauses() []clause {
	return []clause{
		{"BreakersAreToldUntilTheirProcessEnds", breakersTold},
		{"AdjustChangesOnlyWhatItIsAbout", adjustOnly},
		{"AdjustHasNoRace", adjustRaces},
		{"AdjustRefusesNonsense", adjustNonsense},
		{"SettingsAreReadByName", settingsByName},
		{"APolicyIsKeptAsItIs", keptPolicy},
		{"AClosedQueueTakesNothingNew", closedQueue},
		{"PurgeCancelsWhatIsQueued", purgeQueued},
		{"PurgeIsBounded", purgeBounded},
		{"PurgeTakesTheFirst", purgeTakesFirst},
		{"WhoAndWhyIsText", byIsText},
		{"DueBands", dueBands},
	}
}

func (b *fixture) adjust(edit func(*nixie.QueueSettings)) (nixie.QueueSettings, error) {
	return b.st.Adjust(b.ctx, work, "ann", "because", func(q *nixie.QueueSettings) error {
		edit(q)
		return nil
	})
}

func adjustOnly(b *fixture) {
	b.configure(nixie.QueueSettings{Lease: time.Minute, DedupeScope: nixie.DedupeEver})
	got, err := b.adjust(func(q *nixie.QueueSettings) { q.Paused, q.PausedNote = true, "n" })
	b.ok(err)
	want := nixie.QueueSettings{Lease: time.Minute, DedupeScope: nixie.DedupeEver, Paused: true, PausedNote: "n"}
	same(b, "settings", got, want)
	same(b, "settings that are kept", b.info().Settings, want)
	same(b, "entries", len(b.events(nixie.ID{})), 2)
	b.unchanged(func() {
		_, err := b.adjust(func(q *nixie.QueueSettings) { q.Paused = true })
		b.ok(err)
	})
}

// adjustRaces lets processes that each know one setting change it at once.
func adjustRaces(b *fixture) {
	edits := []func(*nixie.QueueSettings){
		func(q *nixie.QueueSettings) { q.Lease = time.Minute },
		func(q *nixie.QueueSettings) { q.Paused = true },
		func(q *nixie.QueueSettings) { q.Closed = true },
		func(q *nixie.QueueSettings) { q.DedupeScope = nixie.DedupeEver },
	}
	errs := make([]error, len(edits))
	var all sync.WaitGroup
	for i, edit := range edits {
		st := b.join()
		all.Add(1)
		go func() {
			defer all.Done()
			_, errs[i] = st.Adjust(b.ctx, work, "ann", "", func(q *nixie.QueueSettings) error {
				edit(q)
				return nil
			})
		}()
	}
	all.Wait()
	b.ok(errors.Join(errs...))
	same(b, "settings", b.info().Settings, nixie.QueueSettings{Lease: time.Minute, Paused: true, Closed: true,
		DedupeScope: nixie.DedupeEver})
}

func adjustNonsense(b *fixture) {
	b.put("a")
	stop := nixie.Errorf(nixie.CodeConflict, "stop")
	b.unchanged(func() {
		_, err := b.adjust(func(q *nixie.QueueSettings) { q.Lease = -1 })
		b.code(err, nixie.CodeInvalid)
		_, err = b.st.Adjust(b.ctx, work, "", "", func(q *nixie.QueueSettings) error { return nil })
		b.code(err, nixie.CodeInvalid)
		_, err = b.st.Adjust(b.ctx, "", "ann", "", func(q *nixie.QueueSettings) error { return nil })
		b.code(err, nixie.CodeInvalid)
		_, err = b.st.Adjust(b.ctx, work, "ann", "", func(q *nixie.QueueSettings) error {
			q.Paused = true
			return stop
		})
		b.code(err, nixie.CodeConflict)
		_, err = b.st.Adjust(b.ctx, "new", "ann", "", func(*nixie.QueueSettings) error { return stop })
		b.code(err, nixie.CodeConflict)
	})
}

func settingsByName(b *fixture) {
	b.configure(nixie.QueueSettings{Lease: time.Minute})
	b.ok(store.Configure(b.ctx, b.st, "other", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
	b.ok(store.Configure(b.ctx, b.st, "third", nixie.QueueSettings{Paused: true}, "ann", ""))
	look := func(names ...string) []store.QueueInfo {
		b.Helper()
		got, err := b.join().Queues(b.ctx, store.QueueQuery{Names: names, Settings: true})
		b.ok(err)
		return got
	}
	got := look(work, "other", "missing")
	same(b, "queues", len(got), 2)
	same(b, "first by name", got[0].Name, "other")
	same(b, "its settings", got[0].Settings, nixie.QueueSettings{Order: nixie.OrderStrict})
	same(b, "settings of the other", got[1].Settings, nixie.QueueSettings{Lease: time.Minute})
	same(b, "all queues", len(look()), 3)
	same(b, "none of them", len(look([]string{}...)), 0)
	b.dead("a", nixie.StatusOpen) // in another queue
	b.ok(b.settle(nixie.Settlement{Delivery: b.took("b"), Verb: nixie.Complete}))
	b.put("c", nixie.Queue("third"))
	whole, err := b.st.Queues(b.ctx, store.QueueQuery{Names: []string{"third"}})
	b.ok(err)
	same(b, "one whole queue", len(whole), 1)
	same(b, "it is paused", whole[0].Settings.Paused, true)
	same(b, "it has", whole[0].Total, 1)
}

// keptPolicy sets a policy up to its limit. A store does not read its text.
func keptPolicy(b *fixture) {
	for _, text := range []string{"max-attempts=3\ncase=type=a \"quoted\"; backoff=linear base=1m",
		"ä" + strings.Repeat("x", nixie.MaxPolicyText-2)} {
		_, err := b.adjust(func(q *nixie.QueueSettings) { q.Policy = text })
		b.ok(err)
		got, err := b.join().Queues(b.ctx, store.QueueQuery{Names: []string{work}, Settings: true})
		b.ok(err)
		same(b, "policy", got[0].Settings.Policy, text)
		same(b, "policy in the overview", b.info().Settings.Policy, text)
	}
	b.unchanged(func() {
		_, err := b.adjust(func(q *nixie.QueueSettings) { q.Policy += "x" })
		b.code(err, nixie.CodeLimit)
		_, err = b.adjust(func(q *nixie.QueueSettings) { q.Policy = "\xff" })
		b.code(err, nixie.CodeInvalid)
		_, err = b.adjust(func(q *nixie.QueueSettings) { q.Policy = "a\x00b" })
		b.code(err, nixie.CodeInvalid)
	})
}

func closedQueue(b *fixture) {
	l := b.dead("dead", nixie.StatusOpen)
	b.put("a", nixie.DedupeKey("k"))
	_, err := b.adjust(func(q *nixie.QueueSettings) { q.Closed, q.ClosedNote = true, "moving house" })
	b.ok(err)
	b.unchanged(func() {
		for _, m := range []nixie.Message{message("b"), message("a", nixie.DedupeKey("k"))} {
			_, err := b.st.Enqueue(b.ctx, message("x", nixie.Queue("other")), m)
			b.code(err, nixie.CodeConflict)
		}
	})
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Retry}))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.ok(b.resolve(l.ID, store.OnRedrive)) // the letter is not new
	b.take("dead")
	_, err = b.adjust(func(q *nixie.QueueSettings) { q.Closed = false })
	b.ok(err)
	b.took("c")
}

func purgeQueued(b *fixture) {
	leased := b.took("leased")
	b.put("other", nixie.Queue("other"))
	waiting := b.took("waiting")
	b.ok(b.settle(nixie.Settlement{Delivery: waiting, Verb: nixie.Retry, Delay: time.Hour, Failure: b.failure(waiting, "x")}))
	var queued []nixie.ID
	for _, key := range []string{"a", "b"} {
		queued = append(queued, b.put(key))
	}
	queued = append(queued, b.put("later", nixie.Delay(time.Hour)), waiting.ID)
	l := b.redriving()
	queued = append(queued, l.Message.ID)
	kept := b.put("kept", nixie.Key("not this one"))
	n, err := b.st.Purge(b.ctx, work, nixie.Filter{Keys: []string{"a", "b", "later", "waiting", "leased", "dead", "other"}}, 100, "ann",
		"test data")
	b.ok(err)
	same(b, "purged", n, len(queued))
	for _, id := range queued {
		b.state(id, nixie.Canceled)
	}
	b.state(kept, nixie.Queued)
	b.state(leased.ID, nixie.Leased)
	b.status(l.ID, nixie.StatusDiscarded)
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	last := entries[len(entries)-1]
	if last.Event != store.OnPurge || last.Actor != "ann" || last.Reason != "5 canceled: test data" {
		b.Fatalf("last entry is %+v", last)
	}
	b.ok(b.settle(nixie.Settlement{Delivery: leased, Verb: nixie.Complete}))
	b.unchanged(func() {
		n, err := b.st.Purge(b.ctx, work, nixie.Filter{Types: []string{"none"}}, 100, "ann", "again")
		b.ok(err)
		same(b, "purged", n, 0)
		_, err = b.st.Purge(b.ctx, work, nixie.Filter{}, 100, "", "unknown")
		b.code(err, nixie.CodeInvalid)
		_, err = b.st.Purge(b.ctx, "nothing", nixie.Filter{}, 100, "ann", "")
		b.code(err, nixie.CodeNotFound)
		_, err = b.st.Purge(b.ctx, "", nixie.Filter{}, 100, "ann", "")
		b.code(err, nixie.CodeInvalid)
	})
}

// redriving makes a letter whose message is queued again.
func (b *fixture) redriving() nixie.Letter {
	b.Helper()
	b.put("dead", nixie.Priority(1))
	l := b.claim(1)[0]
	same(b, "key", l.Key, "dead")
	b.ok(b.settle(b.dying(l, nixie.StatusOpen)))
	letter := b.letterOf(l.ID)
	b.ok(b.resolve(letter.ID, store.OnRedrive))
	return letter
}

func purgeBounded(b *fixture) {
	for i := range 10 {
		b.put(fmt.Sprint(i), nixie.Delay(time.Duration(i%2)*time.Hour))
	}
	b.claim(1)
	for _, step := range []struct{ most, want int }{{-1, 0}, {0, 0}, {4, 4}, {4, 4}, {4, 1}, {4, 0}} {
		n, err := b.st.Purge(b.ctx, work, nixie.Filter{}, step.most, "ann", "because")
		b.ok(err)
		same(b, fmt.Sprintf("purged of at most %d", step.most), n, step.want)
	}
	same(b, "leased", b.info().Leased, 1)
}

// purgeTakesFirst cancels the oldest messages first, also retries between new messages, and a moved
// message by its position in this queue.
func purgeTakesFirst(b *fixture) {
	old, err := b.st.Enqueue(b.ctx, message("moved", nixie.Queue("other"), nixie.Delay(time.Hour)))
	b.ok(err)
	var ids []nixie.ID
	for i := range 6 {
		ids = append(ids, b.put(fmt.Sprint(i), nixie.Delay(time.Duration(i%2)*time.Hour)))
	}
	to := change(store.Move)
	to.Queue = work
	moved := old[0].ID
	b.ok(b.change(moved, to))
	for range 3 {
		n, err := b.st.Purge(b.ctx, work, nixie.Filter{}, 2, "ann", "because")
		b.ok(err)
		same(b, "purged", n, 2)
		for i, id := range ids {
			want := nixie.Queued
			if i < 2 {
				want = nixie.Canceled
			}
			b.state(id, want)
		}
		ids = ids[2:]
	}
	b.state(moved, nixie.Queued)
}

// byIsText refuses actors and reasons that some stores could not keep.
func byIsText(b *fixture) {
	l, id := b.dead("dead", nixie.StatusOpen), b.put("a")
	for _, by := range [...][2]string{{"", "because"}, {"a\x00n", "because"}, {"ann", "be\x00cause"}, {"ann", "\xff"}} {
		b.unchanged(func() {
			b.code(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnHold, Actor: by[0], Reason: by[1]}), nixie.CodeInvalid)
			b.code(b.change(id, store.Change{Verb: store.Cancel, Actor: by[0], Reason: by[1]}), nixie.CodeInvalid)
			_, err := b.st.Features().Streams.Unblock(b.ctx, store.Unblocking{Queue: work, Stream: "s", Actor: by[0], Reason: by[1]})
			b.code(err, nixie.CodeInvalid)
			_, err = b.st.Adjust(b.ctx, work, by[0], by[1], func(q *nixie.QueueSettings) error {
				q.Paused = true
				return nil
			})
			b.code(err, nixie.CodeInvalid)
			_, err = b.st.Purge(b.ctx, work, nixie.Filter{}, 1, by[0], by[1])
			b.code(err, nixie.CodeInvalid)
			_, err = b.st.Plan(b.ctx, store.Operation{Event: store.OnHold, Actor: by[0], Reason: by[1]}, nixie.Filter{}, 0)
			b.code(err, nixie.CodeInvalid)
			_, errs := b.st.Adopt(b.ctx, []nixie.Letter{b.foreign("x")}, by[0], by[1])
			b.code(errs[0], nixie.CodeInvalid)
		})
	}
}

func dueBands(b *fixture) {
	for _, delay := range []time.Duration{0, 1, 60, 61, 3600, 3601, 24 * 3600, 30 * 24 * 3600} {
		b.put(fmt.Sprint(int64(delay)), nixie.Delay(delay*time.Second))
	}
	began := b.clock.Now()
	info := b.info()
	same(b, "by due", info.Due, store.DueCounts{2, 1, 0, 1, 1, 1, 0, 1})
	same(b, "latest", info.LastAt, began.Add(30*24*time.Hour))
	b.clock.Advance(61 * time.Second)
	info = b.info()
	same(b, "by due", info.Due, store.DueCounts{0, 0, 0, 2, 0, 1, 0, 1})
	same(b, "ready", info.Ready, 4)
	b.empty()
}

// breakersTold lets two processes tell of circuit breakers, if the store keeps them.
func breakersTold(b *fixture) {
	other := b.join()
	inspect := b.st.Features().Inspect
	if inspect == nil {
		return
	}
	b.put("a")
	b.put("b")
	sources := [...]*store.Source{store.NewSource(b.st, work), store.NewSource(other, work)}
	for _, source := range sources {
		_, err := source.Receive(b.ctx, nixie.Want{Max: 1, Lease: time.Minute})
		b.ok(err)
	}
	tell := sources[0].KeepBreaker
	until := b.clock.Now().Add(30 * time.Second)
	change := func(kind, state string) nixie.BreakerChange {
		return nixie.BreakerChange{Queue: work, Type: kind, Reason: nixie.ReasonDependency, State: state, Until: until, At: b.clock.Now()}
	}
	since := b.clock.Now()
	told := func(want string) {
		b.Helper()
		h, err := inspect(b.ctx)
		b.ok(err)
		list, err := store.Breakers(b.ctx, b.st.Features().Documents, h.Owners)
		b.ok(err)
		var got []string
		for _, w := range list {
			got = append(got, fmt.Sprint(w.Owner, " ", w.Queue, " ", w.Type, " ", w.Reason, " ", w.State, " ",
				w.Until.Equal(until), w.Since.Equal(since)))
		}
		same(b, "breakers", fmt.Sprintf("%q", got), want)
	}
	told("[]")
	b.ok(tell(b.ctx, change("mail", "open")))
	b.ok(tell(b.ctx, change("card", "open")))
	b.ok(sources[1].KeepBreaker(b.ctx, change("mail", "open")))
	b.clock.Advance(time.Second) // no breaker was closed since
	b.ok(tell(b.ctx, change("mail", "half-open")))
	told(`["owner-1 work card dependency open true true" "owner-1 work mail dependency half-open true true" ` +
		`"owner-2 work mail dependency open true true"]`)
	b.ok(tell(b.ctx, change("card", "closed")))
	b.shared.Crash(other)
	_, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 1, Lease: time.Minute})
	b.ok(err)
	told(`["owner-1 work mail dependency half-open true true"]`)
}
