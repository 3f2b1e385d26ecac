package storetest

import (
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func editClauses() []clause {
	return []clause{
		{"TheOriginalIsKept", originalKept},
		{"AnEditThatChangesNothingIsNone", emptyEdit},
		{"OfAChangedLetterIsRefused", editOfChanged},
		{"LimitsHold", editLimits},
		{"ItIsPartOfItsOperation", editInOperation},
		{"ThePurgedLeaveNoOriginal", purgedOriginal},
	}
}

// seeOriginal returns the fields of an original that can be compared.
func seeOriginal(o *nixie.Original) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" original %q %v %x of %s by %s", o.Body, o.Headers, o.Hash, at(o.At), o.By)
}

// editing returns a redrive of a letter in its present revision, with another body and other
// headers.
func (b *fixture) editing(id nixie.ID, body string, headers ...nixie.Header) store.Resolution {
	b.Helper()
	return store.Resolution{
		Letter: id, Event: store.OnRedrive, Actor: "ann", Reason: "fixed", Force: true,
		Edit: &store.Edit{Body: []byte(body), Headers: headers, Revision: b.letter(id).Revision},
	}
}

// amends returns the reasons of a letter's edits from the audit.
func (b *fixture) amends(id nixie.ID) (list []string) {
	b.Helper()
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	for _, e := range entries {
		if e.Subject == id && e.Event == store.OnAmend {
			list = append(list, e.Actor+": "+e.Reason)
		}
	}
	return list
}

func originalKept(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.WithHeader("colour", "red"), nixie.DedupeKey("k"))
	first := b.clock.Now()
	b.ok(b.resolution(b.editing(l.ID, "fixed", nixie.Header{Name: "colour", Value: "blue"})))
	d := b.take("a")
	same(b, "body that is handed out", string(d.Body), "fixed")
	same(b, "header that is handed out", fmt.Sprint(d.Headers), "[{colour blue}]")
	same(b, "hash that is handed out", d.Hash, nixie.HashBody([]byte("fixed")))
	b.clock.Advance(1)
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.ok(b.resolution(b.editing(l.ID, "")))
	d = b.take("a")
	same(b, "body that is handed out", len(d.Body)+len(d.Headers), 0)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))

	got := b.letter(l.ID)
	same(b, "message", fmt.Sprintf("%q %d %x %s %v", got.Message.Body, len(got.Message.Headers), got.Message.Hash, got.Message.DedupeKey,
		got.Damage), fmt.Sprintf("%q 0 %x k []", "", nixie.HashBody(nil)))
	same(b, "original", seeOriginal(got.Original),
		seeOriginal(&nixie.Original{Body: l.Message.Body, Headers: l.Message.Headers, Hash: l.Message.Hash, At: first, By: "ann"}))
	amends := b.amends(l.ID)
	same(b, "edits in the audit", len(amends), 2)
	before, after := fmt.Sprintf("%x", l.Message.Hash), fmt.Sprintf("%x", nixie.HashBody([]byte("fixed")))
	same(b, "first edit", strings.HasPrefix(amends[0], "ann: edited: body sha256 "+before+" → "+after+", headers sha256 "), true)
	same(b, "second edit", strings.HasPrefix(amends[1], "ann: edited: body sha256 "+after+" → "), true)
	short, _, err := b.st.Letters(b.ctx, nixie.Filter{}, store.Page{Bodies: true})
	b.ok(err)
	same(b, "a list has the original", short[0].Original == nil, true)
}

func emptyEdit(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.WithHeader("colour", "red"))
	b.ok(b.resolution(b.editing(l.ID, string(l.Message.Body), l.Message.Headers...)))
	got := b.letter(l.ID)
	same(b, "status", got.Status, nixie.StatusRedriving)
	same(b, "original", seeOriginal(got.Original), "")
	same(b, "edits in the audit", len(b.amends(l.ID)), 0)
}

// editOfChanged shows that an edit is not lost when another edit was made from the same revision.
func editOfChanged(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	late := b.editing(l.ID, "late")
	b.ok(b.resolution(b.editing(l.ID, "soon")))
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	b.unchanged(func() { b.code(b.resolution(late), nixie.CodeConflict) })
	same(b, "body", string(b.letter(l.ID).Message.Body), "soon")
}

func editLimits(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.unchanged(func() {
		b.code(b.resolution(b.editing(l.ID, strings.Repeat("x", nixie.MaxBody+1))), nixie.CodeLimit)
		b.code(b.resolution(b.editing(l.ID, "", nixie.Header{Name: "h", Value: strings.Repeat("x", nixie.MaxHeaders)})), nixie.CodeLimit)
		b.code(b.resolution(b.editing(l.ID, "", nixie.Header{Value: "nameless"})), nixie.CodeInvalid)
		for _, on := range []store.Event{store.OnHold, store.OnDiscard, store.OnConfirm} {
			r := b.editing(l.ID, "other")
			r.Event = on
			b.code(b.resolution(r), nixie.CodeInvalid)
		}
		large := b.editing(l.ID, strings.Repeat("x", nixie.MaxBody))
		for _, err := range b.st.Resolve(b.ctx, []store.Resolution{large, large, large, large, b.editing(l.ID, "x")}) {
			b.code(err, nixie.CodeLimit)
		}
	})
}

func editInOperation(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	r := b.editing(l.ID, "fixed")
	r.Operation = op.ID
	b.ok(b.resolution(r))
	got, _ := b.operation(op.ID, 0)
	same(b, "done", got.Done, 1)
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	n := len(entries)
	for i, want := range []store.Event{store.OnAmend, store.OnRedrive} {
		e := entries[n-2+i]
		same(b, "entry", fmt.Sprint(e.Event, e.Subject, e.Actor, e.Operation), fmt.Sprint(want, l.ID, "ann", op.ID))
	}
}

func purgedOriginal(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolution(b.editing(l.ID, "fixed")))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.purge(l.ID)
	b.sound()
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
}
