package storetest

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func regroupClauses() []clause {
	return []clause{
		{"ChangesGroupsAndNothingElse", regrouped},
		{"RefusesLettersThatMove", notRegrouped},
		{"IsWhatLaterDeathsAreComparedWith", regroupedItems},
	}
}

// regroup gives letters the group v3:new as they were read.
func (b *fixture) regroup(dry bool, actor string, letters ...nixie.Letter) []error {
	b.Helper()
	for i := range letters {
		letters[i].Signature, letters[i].Fingerprint = "new group", "v3:new"
	}
	errs := b.st.Features().Regroup(b.ctx, store.Regrouping{Letters: letters, Actor: actor, Reason: "why", DryRun: dry})
	same(b, "number of answers", len(errs), len(letters))
	return errs
}

// regrouped changes label and fingerprint, with what counts them, and one entry in the audit.
func regrouped(b *fixture) {
	b.deaths(3)
	ls := b.letters(nixie.Filter{})
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	b.unchanged(func() {
		for _, err := range b.regroup(true, "ann", b.letters(nixie.Filter{})...) {
			b.ok(err)
		}
		for _, err := range b.regroup(false, "ann") {
			b.ok(err)
		}
	})
	for i := range ls[:2] {
		for _, err := range b.regroup(false, []string{"ann", ""}[i], b.letters(nixie.Filter{IDs: []nixie.ID{ls[i].ID}})...) {
			b.ok(err)
		}
	}
	for i, l := range ls {
		if i < 2 {
			l.Signature, l.Fingerprint = "new group", "v3:new"
		}
		same(b, "letter", fmt.Sprintf("%+v", b.letter(l.ID)), fmt.Sprintf("%+v", l))
		found := b.letters(nixie.Filter{IDs: []nixie.ID{l.ID}, Fingerprints: []string{l.Fingerprint}})
		same(b, "found by its fingerprint", len(found), 1)
	}
	groups, _, err := b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Described: true})
	b.ok(err)
	same(b, "letters of the old group", store.Sizes(groups[0])[ls[2].Fingerprint], 1)
	same(b, "letters of the new group", store.Sizes(groups[0])["v3:new"], 2)
	same(b, "label of the new group", groups[0][0].Label, "new group")
	after, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	n := len(entries)
	if len(after) != n+1 || after[n].Event != store.OnRegroup || after[n].Actor != "ann" || after[n].Reason != "why" ||
		!after[n].Subject.IsZero() || after[n].Sum(after[n-1].Hash) != after[n].Hash {
		b.Errorf("the audit had %d entries, and is %+v", n, after)
	}
}

// notRegrouped refuses letters that are on their way, are about to be, or are others by now.
func notRegrouped(b *fixture) {
	ls := b.deaths(4)
	b.plan(store.OnHold, nixie.Filter{IDs: []nixie.ID{ls[0].ID}}, 0)
	b.ok(b.resolve(ls[2].ID, store.OnRedrive))
	b.clock.Advance(time.Second)
	b.diesOf(ls[2].Message.Key, "v3:again")
	b.ok(b.resolve(ls[1].ID, store.OnRedrive))
	onItsWay := b.letter(ls[1].ID)
	gone := ls[3]
	gone.ID = b.idOf("gone")
	b.unchanged(func() {
		for _, dry := range []bool{true, false} {
			errs := b.regroup(dry, "ann", ls[0], onItsWay, ls[2], gone)
			for i, want := range []nixie.Code{nixie.CodeConflict, nixie.CodeConflict, nixie.CodeConflict, nixie.CodeNotFound} {
				b.code(errs[i], want)
			}
		}
	})
	same(b, "another letter of the same call", b.regroup(false, "ann", ls[0], ls[3])[1], nil)
	same(b, "its fingerprint", b.letter(ls[3].ID).Fingerprint, "v3:new")
	tooMany := make([]nixie.Letter, nixie.MaxBatch+1)
	b.code(b.regroup(false, "ann", tooMany...)[0], nixie.CodeLimit)
	long := store.Regrouping{Letters: ls[3:], Actor: "ann", Reason: string(make([]byte, nixie.MaxReason+1))}
	b.code(b.st.Features().Regroup(b.ctx, long)[0], nixie.CodeLimit)
}

// regroupedItems regroups letters whose messages a broker took: the next death there is compared
// with the new group.
func regroupedItems(b *fixture) {
	for fingerprint, want := range map[string]store.Outcome{"v3:new": {SameFailure: 1}, "v3:other": {NewFailure: 1}} {
		l := b.adopted(b.foreign(fingerprint))
		op := b.redriven(store.OnConfirm, l)
		b.ok(b.regroup(false, "ann", b.letter(l.ID))[0])
		b.clock.Advance(time.Minute)
		next := b.later(l, 1, "worse")
		next.Operation, next.Fingerprint = op, fingerprint
		_, err := b.buryOne(next)
		b.ok(err)
		same(b, "outcome of "+fingerprint, b.outcome(op), want)
	}
}
