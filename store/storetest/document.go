package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func documentClauses() []clause {
	return []clause{
		{"WrittenAndFound", documentsWritten},
		{"AnotherRevisionIsAConflict", documentConflicts},
		{"ARevisionIsNeverUsedAgain", documentRevisions},
		{"OneHolderOfALease", documentLeases},
		{"MessagesFollow", documentMessages},
		{"ByLabelAndByPage", documentPages},
		{"EarliestDueFirst", documentsDue},
		{"WhatHasExpiredDoesNotExist", documentsExpire},
		{"ExpiredOnesArePruned", documentsPruned},
		{"OnlyOperatorsAreInTheAudit", documentAudit},
		{"AWritingWakes", documentsWake},
		{"BreakersOfLivingProcesses", breakersKept},
		{"Nonsense", documentNonsense},
		{"OneMakesANewDocument", documentRace},
		{"ManyWritersLoseNothing", documentCounter},
	}
}

const space = "group"

// document is a change that puts a document.
func document(key, value string, revision int64) store.DocumentChange {
	return store.DocumentChange{DocumentKey: store.DocumentKey{Space: space, Key: key}, Verb: store.PutDocument, If: revision,
		Value: json.RawMessage(value)}
}

// write writes documents by a program.
func (b *fixture) write(changes ...store.DocumentChange) ([]store.Document, error) {
	return b.st.Features().Documents.Write(b.ctx, store.Writing{Changes: changes})
}

// find lists documents as another process sees them.
func (b *fixture) find(q store.DocumentQuery, page store.Page) ([]store.Document, string) {
	b.Helper()
	q.Space = space
	list, next, err := b.join().Features().Documents.Find(b.ctx, q, page)
	b.ok(err)
	return list, next
}

// found returns the keys of documents.
func (b *fixture) found(q store.DocumentQuery, page store.Page) string {
	b.Helper()
	list, _ := b.find(q, page)
	var keys []string
	for i := range list {
		keys = append(keys, list[i].Key)
	}
	return strings.Join(keys, " ")
}

// document returns a document, the zero one if it does not exist.
func (b *fixture) document(key string) store.Document {
	b.Helper()
	if list, _ := b.find(store.DocumentQuery{Key: key}, store.Page{}); len(list) > 0 {
		return list[0]
	}
	return store.Document{}
}

func documentsWritten(b *fixture) {
	first := document("a", `{"n":"'; drop table document ␀\u0000"}`, 0)
	first.Label, first.Due, first.Expires = "odd", b.clock.Now().Add(time.Minute), b.clock.Now().Add(time.Hour)
	got, err := b.write(first, document("b", `2`, 0))
	b.ok(err)
	a := b.document("a")
	same(b, "value", string(a.Value), string(first.Value))
	same(b, "label", a.Label, "odd")
	same(b, "due", a.Due.Equal(first.Due) && a.Expires.Equal(first.Expires) && a.At.Equal(b.clock.Now()), true)
	same(b, "answer", fmt.Sprint(got[0]), fmt.Sprint(a))
	b.clock.Advance(time.Second)
	next, err := b.write(document("a", `3`, a.Revision), store.DocumentChange{DocumentKey: got[1].DocumentKey, Verb: store.RemoveDocument,
		If: got[1].Revision})
	b.ok(err)
	same(b, "a removed one", next[1].Revision, 0)
	same(b, "documents", b.found(store.DocumentQuery{}, store.Page{}), "a")
	same(b, "the rest is replaced", fmt.Sprint(b.document("a")), fmt.Sprint(store.Document{
		DocumentKey: a.DocumentKey, Value: json.RawMessage("3"), Revision: next[0].Revision, At: b.clock.Now()}))
}

func documentConflicts(b *fixture) {
	got, err := b.write(document("a", `1`, 0))
	b.ok(err)
	remove := store.DocumentChange{DocumentKey: got[0].DocumentKey, Verb: store.RemoveDocument, If: got[0].Revision + 7}
	for _, change := range []store.DocumentChange{document("a", `2`, 0), document("a", `2`, got[0].Revision+7), remove} {
		_, err = b.write(document("b", `2`, 0), change)
		b.code(err, nixie.CodeConflict)
	}
	for _, verb := range []store.DocumentVerb{store.RemoveDocument, store.TakeDocument} {
		_, err = b.write(document("b", `2`, 0), store.DocumentChange{DocumentKey: store.DocumentKey{Space: space, Key: "c"}, Verb: verb,
			If: store.AnyRevision, Owner: "x"})
		b.code(err, nixie.CodeNotFound)
	}
	same(b, "all or nothing", b.found(store.DocumentQuery{}, store.Page{}), "a")
	_, err = b.write(document("a", `4`, store.AnyRevision), document("b", `4`, store.AnyRevision))
	b.ok(err)
	same(b, "any revision", string(b.document("a").Value)+string(b.document("b").Value), "44")
}

func documentRevisions(b *fixture) {
	seen := map[int64]bool{}
	for range 3 {
		got, err := b.write(document("a", `1`, 0), document("b", `1`, store.AnyRevision))
		b.ok(err)
		for _, d := range got {
			same(b, "revision is new", d.Revision > 0 && !seen[d.Revision], true)
			seen[d.Revision] = true
		}
		_, err = b.write(store.DocumentChange{DocumentKey: got[0].DocumentKey, Verb: store.RemoveDocument, If: got[0].Revision})
		b.ok(err)
	}
}

func documentLeases(b *fixture) {
	_, err := b.write(document("a", `1`, 0))
	b.ok(err)
	take := func(owner string, d time.Duration) error {
		_, err := b.write(store.DocumentChange{DocumentKey: store.DocumentKey{Space: space, Key: "a"}, Verb: store.TakeDocument,
			If: store.AnyRevision, Owner: owner, Lease: d})
		return err
	}
	b.ok(take("x", 15*time.Second))
	same(b, "holder", b.document("a").Owner, "x")
	same(b, "end", b.document("a").Until.Equal(b.clock.Now().Add(15*time.Second)), true)
	b.code(take("y", time.Second), nixie.CodeConflict)
	b.code(take("y", 0), nixie.CodeConflict)
	b.clock.Advance(10 * time.Second)
	b.ok(take("x", 15*time.Second))
	_, err = b.write(document("a", `2`, store.AnyRevision))
	b.ok(err)
	same(b, "a lease stays", b.document("a").Owner+string(b.document("a").Value), "x2")
	b.clock.Advance(15 * time.Second)
	b.ok(take("y", time.Second))
	b.ok(take("y", 0))
	same(b, "given back", b.document("a").Owner, "")
	b.ok(take("x", time.Second))
}

func documentMessages(b *fixture) {
	w := store.Writing{Changes: []store.DocumentChange{document("nightly", `1`, 0)}, Then: []nixie.Message{{Queue: work, Key: "run"}}}
	_, err := b.st.Features().Documents.Write(b.ctx, w)
	b.ok(err)
	_, err = b.st.Features().Documents.Write(b.ctx, w)
	b.code(err, nixie.CodeConflict)
	b.keys(b.claim(10), "run")
	b.configure(nixie.QueueSettings{Closed: true})
	w.Changes[0].If = store.AnyRevision
	w.Changes[0].Value = json.RawMessage("2")
	_, err = b.st.Features().Documents.Write(b.ctx, w)
	b.code(err, nixie.CodeConflict)
	same(b, "all or nothing", string(b.document("nightly").Value), "1")
}

func documentPages(b *fixture) {
	for i := range 5 {
		c := document(fmt.Sprint(i), `1`, 0)
		c.Label = []string{"even", "odd"}[i%2]
		_, err := b.write(c)
		b.ok(err)
	}
	_, err := b.write(store.DocumentChange{DocumentKey: store.DocumentKey{Space: "other", Key: "2"}, Verb: store.PutDocument,
		Value: json.RawMessage("1")})
	b.ok(err)
	same(b, "one", b.found(store.DocumentQuery{Key: "2"}, store.Page{}), "2")
	same(b, "one of another label", b.found(store.DocumentQuery{Key: "2", Label: "odd"}, store.Page{}), "")
	same(b, "a label", b.found(store.DocumentQuery{Label: "even"}, store.Page{}), "0 2 4")
	list, next := b.find(store.DocumentQuery{}, store.Page{Limit: 2})
	same(b, "page", len(list), 2)
	same(b, "next page", b.found(store.DocumentQuery{}, store.Page{Limit: 3, Cursor: next}), "2 3 4")
	_, next = b.find(store.DocumentQuery{}, store.Page{Limit: 5})
	same(b, "cursor of the last page", next, "")
}

func documentsDue(b *fixture) {
	for i := range 5 {
		c := document(fmt.Sprint(i), `1`, 0)
		if i > 0 {
			c.Due = b.clock.Now().Add(time.Duration(5-i) * time.Minute)
		}
		if i == 3 {
			c.Label = "odd"
		}
		_, err := b.write(c)
		b.ok(err)
	}
	by := b.clock.Now().Add(3 * time.Minute)
	same(b, "due", b.found(store.DocumentQuery{DueBy: by}, store.Page{}), "4 3 2")
	same(b, "earliest two", b.found(store.DocumentQuery{DueBy: by}, store.Page{Limit: 2}), "4 3")
	same(b, "due of a label", b.found(store.DocumentQuery{DueBy: by, Label: "odd"}, store.Page{}), "3")
	same(b, "due of a key", b.found(store.DocumentQuery{DueBy: by, Key: "1"}, store.Page{}), "")
}

func documentsExpire(b *fixture) {
	c := document("a", `1`, 0)
	c.Expires = b.clock.Now().Add(time.Minute)
	c.Due = b.clock.Now()
	_, err := b.write(c, document("b", `1`, 0))
	b.ok(err)
	b.clock.Advance(time.Minute - time.Millisecond)
	same(b, "before", b.found(store.DocumentQuery{}, store.Page{}), "a b")
	b.clock.Advance(time.Millisecond)
	same(b, "after", b.found(store.DocumentQuery{}, store.Page{}), "b")
	same(b, "due", b.found(store.DocumentQuery{DueBy: b.clock.Now()}, store.Page{}), "")
	_, err = b.write(store.DocumentChange{DocumentKey: c.DocumentKey, Verb: store.RemoveDocument, If: store.AnyRevision})
	b.code(err, nixie.CodeNotFound)
	_, err = b.write(document("a", `2`, 0))
	b.ok(err)
	same(b, "made again", string(b.document("a").Value), "2")
}

func documentsPruned(b *fixture) {
	for i := range 5 {
		c := document(fmt.Sprint(i), `1`, 0)
		c.Expires = b.clock.Now().Add(time.Minute)
		_, err := b.write(c)
		b.ok(err)
	}
	_, err := b.write(document("stays", `1`, 0))
	b.ok(err)
	same(b, "nothing has expired", b.prune(2, false).Documents, 0)
	b.clock.Advance(time.Minute)
	same(b, "found by a dry run", b.prune(2, true).Documents, 5)
	same(b, "pruned", b.prune(2, false).Documents, 5)
	same(b, "pruned again", b.prune(2, false).Documents, 0)
	same(b, "left", b.found(store.DocumentQuery{}, store.Page{}), "stays")
}

func documentAudit(b *fixture) {
	_, err := b.write(document("a", `1`, 0))
	b.ok(err)
	_, err = b.st.Features().Documents.Write(b.ctx, store.Writing{Changes: []store.DocumentChange{document("a", `2`, store.AnyRevision)},
		Queue: "office", Actor: "ann", Reason: "group a is muted"})
	b.ok(err)
	same(b, "actor", b.document("a").By, "ann")
	list, _, err := b.st.Audit(b.ctx, store.AuditFilter{}, store.Page{})
	b.ok(err)
	same(b, "entries", len(list), 1)
	e := list[0]
	same(b, "entry", strings.Join([]string{e.Queue, e.Actor, string(e.Event), e.Reason}, " "), "office ann write group a is muted")
}

func documentsWake(b *fixture) {
	woken := b.st.Features().Wake(store.DocumentWake(space))
	_, err := b.write(document("a", `1`, 0))
	b.ok(err)
	select {
	case <-woken:
	case <-time.After(time.Minute):
		b.Error("a writing wakes nothing")
	}
}

// breakersKept lets a worker of a process tell of its circuit breakers.
func breakersKept(b *fixture) {
	st := b.join()
	source := store.NewSource(st, work)
	change := nixie.BreakerChange{Queue: work, Type: "t", Reason: nixie.ReasonTimeout, State: "open", At: b.clock.Now(),
		Until: b.clock.Now().Add(time.Minute)}
	keep := func(state string) {
		b.Helper()
		change.State = state
		b.ok(source.KeepBreaker(b.ctx, change))
	}
	var owners []store.Owner
	open := func(what, want string) {
		b.Helper()
		list, err := store.Breakers(b.ctx, b.st.Features().Documents, owners)
		b.ok(err)
		var got []string
		for _, x := range list {
			got = append(got, fmt.Sprint(x.Queue, " ", x.Type, " ", x.Reason, " ", x.State, " since ", x.Since.Equal(b.clock.Now())))
		}
		same(b, what, strings.Join(got, ", "), want)
	}
	keep("open")
	open("before the first claim", "")
	b.put("a")
	ds, err := source.Receive(b.ctx, nixie.Want{Max: 1, Lease: time.Minute})
	b.ok(err)
	b.keys(ds, "a")
	owners = []store.Owner{{Name: ds[0].Lease.Owner, Alive: true, StartedAt: b.clock.Now()}}
	keep("open")
	keep("half-open")
	open("half open", "work t timeout half-open since true")
	change.Reason = nixie.ReasonDependency
	keep("open")
	open("two", "work t dependency open since true, work t timeout half-open since true")
	owners[0].StartedAt = b.clock.Now().Add(time.Millisecond)
	open("of an earlier process of that name", "")
	owners[0] = store.Owner{Name: ds[0].Lease.Owner}
	open("of a process that ended", "")
	owners[0].Alive = true
	keep("closed")
	keep("closed")
	open("closed", "work t timeout half-open since true")
}

func documentNonsense(b *fixture) {
	good := document("a", `1`, 0)
	bad := func(change func(*store.DocumentChange)) store.Writing {
		c := good
		change(&c)
		return store.Writing{Changes: []store.DocumentChange{c}}
	}
	invalid := []store.Writing{
		bad(func(c *store.DocumentChange) { c.Space = "" }),
		bad(func(c *store.DocumentChange) { c.Space = strings.Repeat("s", store.MaxSpace+1) }),
		bad(func(c *store.DocumentChange) { c.Key = "" }),
		bad(func(c *store.DocumentChange) { c.Key = "a\x00" }),
		bad(func(c *store.DocumentChange) { c.Label = "\xff" }),
		bad(func(c *store.DocumentChange) { c.Verb = "put it" }),
		bad(func(c *store.DocumentChange) { c.If = -2 }),
		bad(func(c *store.DocumentChange) { c.Value = json.RawMessage(`{`) }),
		bad(func(c *store.DocumentChange) { c.Value = nil }),
		bad(func(c *store.DocumentChange) { c.Value = json.RawMessage("\"\xff\"") }),
		bad(func(c *store.DocumentChange) { c.Verb = store.TakeDocument }),
		bad(func(c *store.DocumentChange) { c.Verb, c.Owner, c.Lease = store.TakeDocument, "x", nixie.MaxLease+1 }),
		{Changes: []store.DocumentChange{good, good}},
		{Changes: []store.DocumentChange{good}, Actor: "ann"},
		{Changes: []store.DocumentChange{good}, Queue: work},
		{Changes: []store.DocumentChange{good}, Then: []nixie.Message{{}}},
	}
	b.unchanged(func() {
		for i, w := range invalid {
			if _, err := b.st.Features().Documents.Write(b.ctx, w); nixie.CodeOf(err) != nixie.CodeInvalid {
				b.Errorf("writing %d: %v", i, err)
			}
		}
		many := store.Writing{}
		for i := range store.MaxDocumentChanges + 1 {
			many.Changes = append(many.Changes, document(fmt.Sprint(i), "1", 0))
		}
		large := bad(func(c *store.DocumentChange) {
			c.Value = json.RawMessage(`"` + strings.Repeat("x", store.MaxDocument-1) + `"`)
		})
		for _, w := range []store.Writing{many, large} {
			_, err := b.st.Features().Documents.Write(b.ctx, w)
			b.code(err, nixie.CodeLimit)
		}
		_, _, err := b.st.Features().Documents.Find(b.ctx, store.DocumentQuery{}, store.Page{})
		b.code(err, nixie.CodeInvalid)
	})
	same(b, "documents", b.found(store.DocumentQuery{}, store.Page{}), "")
}

// documentRace lets eight processes make the same document.
func documentRace(b *fixture) {
	stores := make([]store.Store, 8)
	for i := range stores {
		stores[i] = b.join()
	}
	for round := range 20 {
		var all sync.WaitGroup
		var won atomic.Int64
		begin := make(chan struct{})
		for _, st := range stores {
			all.Go(func() {
				<-begin
				w := store.Writing{Changes: []store.DocumentChange{document(fmt.Sprint(round), "1", 0)}}
				_, err := st.Features().Documents.Write(b.ctx, w)
				switch nixie.CodeOf(err) {
				case "":
					won.Add(1)
				case nixie.CodeConflict:
				default:
					b.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
		same(b, "winners", won.Load(), 1)
	}
}

// documentCounter lets eight processes count up in one document.
func documentCounter(b *fixture) {
	const each = 10
	var all sync.WaitGroup
	for range 8 {
		docs := b.join().Features().Documents
		all.Go(func() {
			for done := 0; done < each; {
				list, _, err := docs.Find(b.ctx, store.DocumentQuery{Space: space, Key: "n"}, store.Page{})
				if err != nil {
					b.Error(err)
					return
				}
				n, revision := 0, int64(0)
				if len(list) > 0 {
					_ = json.Unmarshal(list[0].Value, &n) // the sum tells
					revision = list[0].Revision
				}
				_, err = docs.Write(b.ctx, store.Writing{Changes: []store.DocumentChange{document("n", fmt.Sprint(n+1), revision)}})
				switch nixie.CodeOf(err) {
				case "":
					done++
				case nixie.CodeConflict:
				default:
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	same(b, "sum", string(b.document("n").Value), fmt.Sprint(8*each))
}
