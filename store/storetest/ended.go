package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// endedGenerations ends messages in all ways, one of them twice by a death before it succeeds, and
// lists that by time, queue and state, page by page.
func endedGenerations(b *fixture) {
	list := b.st.Features().Ended
	if list == nil {
		b.Skip("the store does not list what ended")
	}
	begun := b.clock.Now()
	at := func(minutes int) time.Time { return begun.Add(time.Duration(minutes) * time.Minute) }
	rows := func(q store.EndedQuery, limit int, want ...string) {
		b.Helper()
		var got []string
		for page := (store.Page{Limit: limit}); ; {
			some, next, err := list(b.ctx, q, page)
			b.ok(err)
			if len(some) > limit {
				b.Fatalf("%d rows on a page of %d", len(some), limit)
			}
			for _, e := range some {
				text := fmt.Sprint(e.Key, " ", e.State, " ", e.At.Sub(begun).Minutes())
				if e.Type+e.Text != "" {
					text += " " + e.Type + ": " + e.Text
				}
				if e.Message.IsZero() {
					b.Fatalf("no ID: %+v", e)
				}
				got = append(got, strings.TrimSpace(text))
			}
			if page.Cursor = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			b.Fatalf("%+v by %d:\n%q, want\n%q", q, limit, got, want)
		}
	}
	all := store.EndedQuery{}
	rows(all, 3)
	die := func(key, text string) {
		b.clock.Advance(time.Minute)
		d := b.take(key)
		s := b.dying(d, nixie.StatusOpen)
		s.Failure, s.Second = b.failure(d, "first "+text), b.failure(d, text)
		b.ok(b.settle(s))
	}
	b.put("twice")
	d := b.take("twice")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "slow")}))
	die("twice", "no")
	letter := b.letterOf(d.ID).ID
	b.put("gone")
	b.clock.Advance(time.Minute)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("gone"), Verb: nixie.Discard, Note: "old"}))
	b.ok(b.resolve(letter, store.OnRedrive))
	rows(all, 3, "gone discarded 2", "twice dead 1 storetest.Error: no")
	die("twice", "again")
	b.ok(b.resolve(letter, store.OnRedrive))
	b.clock.Advance(time.Minute)
	b.complete(b.take("twice"))
	r, err := b.st.Enqueue(b.ctx, nixie.Message{Queue: "other", Key: "stopped"})
	b.ok(err)
	b.clock.Advance(time.Minute)
	for _, err := range b.st.Amend(b.ctx, []nixie.ID{r[0].ID}, store.Change{Verb: store.Cancel, Actor: "ann", Reason: "no need"}) {
		b.ok(err)
	}
	b.put("waits")
	want := []string{"stopped canceled 5", "twice succeeded 4", "twice dead 3 storetest.Error: again", "gone discarded 2",
		"twice dead 1 storetest.Error: no"}
	for limit := 1; limit < 7; limit++ {
		rows(all, limit, want...)
	}
	rows(store.EndedQuery{Queues: []string{"other", "none"}}, 2, want[0])
	rows(store.EndedQuery{States: []nixie.State{nixie.Dead, nixie.Discarded}}, 2, want[2:]...)
	rows(store.EndedQuery{At: nixie.Times{After: at(2), Before: at(4)}}, 2, want[2:4]...)
	_, _, err = list(b.ctx, store.EndedQuery{States: []nixie.State{nixie.Queued}}, store.Page{})
	b.code(err, nixie.CodeInvalid)
	for _, cursor := range []string{"x", "1", "1.x", "1.2.3"} {
		_, _, err = list(b.ctx, all, store.Page{Cursor: cursor})
		b.code(err, nixie.CodeInvalid)
	}
}
