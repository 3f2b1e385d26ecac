package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// TestLetterHasItsOwnFailure lets a message die, fail and die again: the failure that is
// in the letter is told with the others, in its position, by lists, by searches and by the views,
// and leaves the letter when there is a newer one.
func TestLetterHasItsOwnFailure(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	fail := func(verb nixie.Verb, text string, then ...string) {
		t.Helper()
		d := o.claim("m1")
		st := nixie.Settlement{Delivery: d, Verb: verb, Failure: &nixie.Failure{
			Generation: d.Generation, Attempt: d.Attempts, FailedAt: o.clock.Now(), Class: nixie.ClassPermanent, Reason: nixie.Reason(text),
			Text: text, Type: "app." + text,
			Attachments: []nixie.Attachment{{Name: text, Data: []byte(text)}},
		}}
		if verb == nixie.Bury {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Signature: text, Fingerprint: text}
		}
		o.settle(st)
		sound(t, o.Store)
		letters, _, err := o.Letters(t.Context(), nixie.Filter{Text: text}, store.Page{Whole: true})
		o.must(err)
		messages, _, err := o.Messages(t.Context(), nixie.Filter{Text: text}, store.Page{Whole: true})
		o.must(err)
		if len(messages) != 1 || messages[0].LastFailure != text {
			t.Fatalf("messages that failed with %q are %+v", text, messages)
		}
		histories := [][]nixie.Failure{messages[0].History}
		for i := range letters {
			histories = append(histories, letters[i].History)
		}
		for _, history := range histories {
			var told []string
			for _, f := range history {
				told = append(told, f.Text)
				if f.Type != "app."+f.Text || string(f.Reason) != f.Text || len(f.Attachments) != 1 || f.Attachments[0].Name != f.Text {
					t.Errorf("failure %q is told as %+v", f.Text, f)
				}
			}
			if !slices.Equal(told, then) {
				t.Errorf("the history is %q, want %q", told, then)
			}
		}
		o.row("m1", "error", text)
	}
	own := func(want int) {
		t.Helper()
		if n := o.count(t.Context(), "select from "+o.schema+".letter where doc is not null"); n != want {
			t.Errorf("%d letters have a failure of their own, want %d", n, want)
		}
	}
	fail(nixie.Retry, "a", "a")
	o.clock.Advance(time.Minute)
	fail(nixie.Bury, "b", "a", "b")
	own(1)
	o.resolve(o.letter("m1"), store.OnRedrive)
	own(1)
	fail(nixie.Retry, "c", "a", "b", "c")
	own(0)
	fail(nixie.Bury, "d", "a", "b", "c", "d")
	o.resolve(o.letter("m1"), store.OnRedrive)
	o.settle(nixie.Settlement{Delivery: o.claim("m1"), Verb: nixie.Complete})
	sound(t, o.Store)
}
