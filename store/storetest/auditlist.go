package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func auditListClauses() []clause {
	return []clause{
		{"TheAuditOfAllQueues", auditOfAll},
		{"ABadCursorOfTheAudit", auditCursor},
		{"WhoEndedARedrivenMessage", whoEnded},
		{"ATryLeavesOneEntry", aTry},
	}
}

// aTry notes a try, and looks whether anything else has changed.
func aTry(b *fixture) {
	tried := b.st.Features().Tried
	l := b.dead("x", nixie.StatusOpen)
	queue := l.Message.Queue
	before, err := allEntries(b.ctx, b.st, queue)
	b.ok(err)
	letters := b.letters(nixie.Filter{})
	b.ok(tried(b.ctx, queue, "ann", "1 copied for: fix"))
	after, err := allEntries(b.ctx, b.st, queue)
	b.ok(err)
	if n := len(before); len(after) != n+1 || after[n].Event != store.OnTry || after[n].Actor != "ann" ||
		after[n].Reason != "1 copied for: fix" || !after[n].Subject.IsZero() || after[n].Sum(before[n-1].Hash) != after[n].Hash {
		b.Errorf("the audit had %d entries, and is %+v", n, after)
	}
	if now := b.letters(nixie.Filter{}); !reflect.DeepEqual(letters, now) {
		b.Errorf("letters were %+v\nand are %+v", letters, now)
	}
	b.code(tried(b.ctx, "none", "ann", "why"), nixie.CodeNotFound)
	b.code(tried(b.ctx, queue, "", "why"), nixie.CodeInvalid)
}

// auditOfAll lists the actions of several operators on several queues.
func auditOfAll(b *fixture) {
	var gone []nixie.ID
	for i := range 30 {
		queue, who := fmt.Sprint("q", i%3), pick3(i)
		_, err := b.st.Adjust(b.ctx, queue, who, fmt.Sprint("reason ", i), func(q *nixie.QueueSettings) error {
			q.Lease = time.Duration(i+1) * time.Second
			return nil
		})
		b.ok(err)
		if i%4 == 0 {
			gone = append(gone, b.put(fmt.Sprint(i), nixie.Queue(queue)))
			b.ok(b.amend(gone[len(gone)-1], store.Cancel))
		}
		if i%2 == 0 {
			b.clock.Advance(time.Minute)
		}
	}
	b.deaths(3) // by a rule
	var all []store.AuditEntry
	for _, queue := range []string{"q0", "q1", "q2", work} {
		es, err := allEntries(b.ctx, b.st, queue)
		b.ok(err)
		all = append(all, es...)
	}
	noon := b.clock.Now().Add(-8 * time.Minute)
	for _, f := range []store.AuditFilter{
		{}, {Oldest: true}, {Queues: []string{"q1", "q2"}}, {Queues: []string{"none"}}, {Since: noon}, {Until: noon, Oldest: true},
		{Actor: "bob"}, {Actor: "unknown"}, {Events: []store.Event{store.OnCancel}},
		{Events: []store.Event{store.OnConfigure}, Actor: "cy", Queues: []string{"q0"}},
		{People: true}, {People: true, Queues: []string{"q1"}, Oldest: true}, {Actor: store.System},
		{Subjects: gone[:1]}, {Subjects: gone[2:5], Oldest: true}, {Subjects: []nixie.ID{{1}}},
	} {
		var want []string
		for i := range all {
			if f.Match(&all[i]) {
				want = append(want, fmt.Sprintf("%+v", all[i]))
			}
		}
		var got []string
		var last time.Time
		list, err := auditList(b, f, 7)
		b.ok(err)
		for _, e := range list {
			got = append(got, fmt.Sprintf("%+v", e))
			if !last.IsZero() && (f.Oldest && e.At.Before(last) || !f.Oldest && e.At.After(last)) {
				b.Fatalf("filter %+v: entry %+v is out of order", f, e)
			}
			last = e.At
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			b.Fatalf("filter %+v gave %d entries, want %d", f, len(got), len(want))
		}
	}
}

// whoEnded shows in the audit who ended redriven messages and why: nixie by a verdict, or an
// operator by a cancel, whose entry comes before the one of the letter.
func whoEnded(b *fixture) {
	dead := []nixie.Letter{b.dead("discarded", nixie.StatusOpen), b.dead("succeeded", nixie.StatusOpen),
		b.dead("canceled", nixie.StatusOpen)}
	for _, l := range dead {
		b.ok(b.resolve(l.ID, store.OnRedrive))
	}
	before, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	for _, d := range b.claim(9) {
		switch d.Key {
		case "discarded":
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard, Note: "no use"}))
		case "succeeded":
			b.complete(d)
		case "canceled":
			b.ok(b.amend(d.ID, store.Cancel))
		}
	}
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	var said []string
	for _, e := range entries[len(before):] {
		said = append(said, fmt.Sprintf("%s by %s: %s", e.Event, e.Actor, e.Reason))
	}
	same(b, "audit", strings.Join(said, ", "), "gone by nixie: no use, success by nixie: , cancel by ann: because, gone by ann: because")
}

func pick3(i int) string { return [...]string{"ann", "bob", "cy"}[i/3%3] }

func auditList(b *fixture, f store.AuditFilter, limit int) ([]store.AuditEntry, error) {
	return pages(func(p store.Page) ([]store.AuditEntry, string, error) {
		p.Limit = limit
		return b.st.Audit(b.ctx, f, p)
	})
}

func auditCursor(b *fixture) {
	for _, cursor := range []string{"x", "-", "1", "💥"} {
		_, _, err := b.st.Audit(b.ctx, store.AuditFilter{}, store.Page{Cursor: cursor})
		b.code(err, nixie.CodeInvalid)
	}
}
