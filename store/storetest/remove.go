package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func noteClauses() []clause {
	return []clause{
		{"NotesStayOverGenerations", notesStay},
		{"NotesAreBounded", notesBounded},
	}
}

func notesStay(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for _, on := range []store.Event{store.OnNote, store.OnDiscard, store.OnNote, store.OnRestore, store.OnRedrive, store.OnNote} {
		b.clock.Advance(time.Second)
		b.ok(b.resolve(l.ID, on))
	}
	b.status(l.ID, nixie.StatusRedriving)
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	got := b.letter(l.ID)
	same(b, "notes", len(got.Notes), 3)
	if n := got.Notes[2]; n.By != "ann" || n.Text != "because" || !n.At.Equal(b.clock.Now()) {
		b.Fatalf("newest note is %+v", n)
	}
	if got.Notes[0].At.After(got.Notes[1].At) {
		b.Fatalf("notes are not oldest first: %+v", got.Notes)
	}
	listed, _, err := b.st.Letters(b.ctx, nixie.Filter{}, store.Page{})
	b.ok(err)
	same(b, "notes in a listing", len(listed[0].Notes), 0)
	if got := b.events(l.ID); !slices.Contains(got, store.OnNote) {
		b.Fatalf("audit of a letter with notes is %q", got)
	}
	same(b, "revision", got.Revision, l.Revision+7)
}

func notesBounded(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	note := func(text string) error {
		return b.resolution(store.Resolution{Letter: l.ID, Event: store.OnNote, Actor: "ann", Reason: text})
	}
	b.unchanged(func() {
		b.code(note(""), nixie.CodeInvalid)
		b.code(note(strings.Repeat("x", nixie.MaxReason+1)), nixie.CodeLimit)
	})
	for range nixie.MaxNotes {
		b.ok(note(strings.Repeat("x", nixie.MaxReason)))
	}
	b.unchanged(func() { b.code(note("one more"), nixie.CodeLimit) })
	same(b, "notes", len(b.letter(l.ID).Notes), nixie.MaxNotes)
}

func purgeClauses() []clause {
	return []clause{
		{"PurgeOfWhatTheCallChanged", purgeOfChanged},
		{"EveryStatus", purgeEveryStatus},
		{"NothingIsLeft", purgeLeavesNothing},
		{"TheKeyIsFree", purgeFreesKey},
		{"OtherOperationsPassItBy", purgedInOperations},
		{"InAnOperation", purgeInOperation},
		{"ALateSettlementFindsNothing", purgedAndLate},
		{"ABlockedStreamGoesOn", purgeUnblocks},
	}
}

// purgeEveryStatus tries all statuses. A letter with a named status goes, unless it is redriving. A
// letter of another status goes only if it is resolved or discarded.
func purgeEveryStatus(b *fixture) {
	for _, status := range nixie.Statuses() {
		l, d := b.letterIn(status)
		harmless := !status.Unresolved()
		plain := store.Resolution{Letter: l.ID, Event: store.OnPurge, Actor: "ann", Reason: "old"}
		other := plain
		other.Statuses = []nixie.Status{nixie.StatusRedriving}
		b.unchanged(func() { b.code(b.resolution(other), nixie.CodeConflict) })
		if !harmless {
			b.unchanged(func() { b.code(b.resolution(plain), nixie.CodeConflict) })
			plain.Statuses = []nixie.Status{status}
		}
		if status == nixie.StatusRedriving {
			b.unchanged(func() { b.code(b.resolution(plain), nixie.CodeConflict) })
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
			continue
		}
		b.ok(b.resolution(plain))
		same(b, "letters with the ID of what was purged", len(b.letters(nixie.Filter{IDs: []nixie.ID{l.ID}})), 0)
		b.unchanged(func() { b.code(b.resolution(plain), nixie.CodeNotFound) })
	}
	same(b, "purged", b.info().Purged, int64(len(nixie.Statuses())-1))
}

// purge removes a letter of any status.
func (b *fixture) purge(id nixie.ID) {
	b.Helper()
	b.ok(b.resolution(store.Resolution{Letter: id, Event: store.OnPurge, Actor: "ann", Reason: "old", Statuses: nixie.Statuses()}))
}

// purgeOfChanged confirms a letter and purges it in the same call. It counts with its last status.
func purgeOfChanged(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for _, err := range b.st.Resolve(b.ctx, []store.Resolution{
		{Letter: l.ID, Event: store.OnConfirm, Actor: "ann"},
		{Letter: l.ID, Event: store.OnPurge, Actor: "ann", Reason: "old"},
	}) {
		b.ok(err)
	}
	info := b.info()
	same(b, "purged", info.Purged, 1)
	same(b, "canceled", info.Canceled, 1)
	b.sound()
}

func purgeLeavesNothing(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	kept := b.dead("b", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnNote))
	total, dead := b.info().Total, b.info().Dead
	b.purge(l.ID)
	rs, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	if len(rs) != 1 || rs[0].ID != kept.Message.ID {
		b.Fatalf("messages after a purge: %+v", rs)
	}
	b.letter(kept.ID)
	same(b, "total", b.info().Total, total)
	same(b, "dead", b.info().Dead, dead-1)
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	last := entries[len(entries)-1]
	if last.Event != store.OnPurge || last.Subject != l.ID || last.Actor != "ann" || last.Reason != "old" {
		b.Fatalf("entry of a purge is %+v", last)
	}
	for _, on := range []store.Event{store.OnRestore, store.OnRedrive, store.OnNote} {
		b.code(b.resolve(l.ID, on), nixie.CodeNotFound)
	}
	b.dead("c", nixie.StatusOpen) // it does not get the number of the removed letter
	same(b, "notes of the next letter", len(b.letters(nixie.Filter{Keys: []string{"c"}})[0].Notes), 0)
}

func purgeFreesKey(b *fixture) {
	for _, scope := range []nixie.DedupeScope{nixie.DedupeUnresolved, nixie.DedupeEver} {
		b.configure(nixie.QueueSettings{DedupeScope: scope})
		l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
		b.purge(l.ID)
		d := b.took("again", nixie.DedupeKey("k"))
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}

func purgedInOperations(b *fixture) {
	ls := b.deaths(2)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	b.purge(ls[0].ID)
	got, next := b.operation(op.ID, 10)
	same(b, "skipped", got.Skipped, 1)
	if got.Selected != 2 || len(next) != 1 || next[0] != ls[1].ID {
		b.Fatalf("operation is %+v, next %v", got, next)
	}
	later := b.dead("later", nixie.StatusOpen)
	b.code(b.resolution(store.Resolution{Letter: later.ID, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}), nixie.CodeNotFound)
}

func purgeInOperation(b *fixture) {
	ls := b.deaths(3)
	b.ok(b.resolve(ls[0].ID, store.OnDiscard))
	b.ok(b.resolve(ls[1].ID, store.OnDiscard))
	op := b.plan(store.OnPurge, nixie.Filter{}, 0)
	for _, l := range ls {
		err := b.resolution(store.Resolution{Letter: l.ID, Event: store.OnPurge, Actor: "ann", Reason: "old", Operation: op.ID})
		if l.ID == ls[2].ID {
			b.code(err, nixie.CodeConflict)
		} else {
			b.ok(err)
		}
	}
	got, next := b.operation(op.ID, 10)
	if got.Done != 2 || got.Skipped != 1 || len(next) != 0 {
		b.Fatalf("operation is %+v, next %v", got, next)
	}
}

// purgedAndLate settles a delivery twice, the second time when its message is removed and others of
// the same claim are still leased.
func purgedAndLate(b *fixture) {
	for _, key := range []string{"a", "b", "c"} {
		b.put(key)
	}
	ds := b.claim(3)
	b.ok(b.settle(b.dying(ds[1], nixie.StatusOpen)))
	b.purge(b.letterOf(ds[1].ID).ID)
	b.unchanged(func() {
		b.code(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}), nixie.CodeLeaseLost, nixie.CodeNotFound)
		b.code(b.settle(b.dying(ds[1], nixie.StatusOpen)), nixie.CodeLeaseLost, nixie.CodeNotFound)
	})
	b.ok(b.st.Extend(b.ctx, ds[:1], time.Minute)[0])
	b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}))
	b.clock.Advance(time.Minute)
	b.code(b.settle(nixie.Settlement{Delivery: ds[2], Verb: nixie.Complete}), nixie.CodeLeaseLost)
	same(b, "crashes", b.take("c").Crashes, 1)
}

func purgeUnblocks(b *fixture) {
	b.configure(nixie.QueueSettings{Order: nixie.OrderStrict})
	l := b.dead("head", nixie.StatusOpen, nixie.Stream("s"))
	b.put("follower", nixie.Stream("s"))
	b.keys(b.claim(1))
	b.purge(l.ID)
	b.keys(b.claim(1), "follower")
}
