package redrive_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// editAll redrives all letters into their queue, edited by the destination.
func editAll(ctx context.Context, t *testing.T, st *memory.Store, route redrive.Destination, id nixie.ID) (redrive.Result, error) {
	t.Helper()
	edit, err := route.Edits()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Edit: edit, MaxRedrives: 3, Batch: 2, Stop: redrive.Stop{Share: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if id.IsZero() {
		op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"}, nixie.Filter{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		id = op.ID
	}
	return e.Run(ctx, id)
}

// queued returns the bodies that wait in the queue of the letters, with their headers.
func queued(t *testing.T, st *memory.Store) map[string]string {
	t.Helper()
	ds, err := st.Claim(t.Context(), "in", nixie.Want{Max: 10, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range ds {
		out[d.Key] = fmt.Sprintf("%s %v", d.Body, d.Headers)
	}
	return out
}

// Letters of a store are edited when they are redriven. A letter that cannot be edited stays as it
// is, and the others go.
func TestEditedOnTheWayToTheQueue(t *testing.T) {
	st := adopted(t, "a", "bad", "review", "too often", "large", "b")
	r, err := editAll(t.Context(), t, st, redrive.Destination{
		Set: []broker.RecordHeader{{Name: "repaired", Value: []byte("yes")}},
		Transform: func(_ context.Context, r *broker.Returning) error {
			switch string(r.Value) {
			case "bad":
				return nixie.Errorf(nixie.CodeInternal, "no idea what this is")
			case "review", "too often":
				t.Errorf("%s is edited, and does not go", r.Value)
			case "large":
				r.Value = make([]byte, nixie.MaxBody+1)
				return nil
			}
			r.Value = append(r.Value, '!')
			return nil
		},
	}, nixie.ID{})
	if err != nil || r.Done != 2 || r.Skipped != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	var why []string
	for _, refused := range r.Refused {
		why = append(why, refused.Why)
	}
	for _, want := range []string{"stays: no idea what this is", "needs review", "the cap is 3",
		"stays: edited body has 16777217 bytes, the limit is 16777216"} {
		if !strings.Contains(strings.Join(why, "\n"), want) {
			t.Errorf("%q does not say %q", why, want)
		}
	}
	if got := fmt.Sprint(statusesOf(t, st)); got != "map[a:redriving b:redriving bad:open large:open review:open too often:open]" {
		t.Error(got)
	}
	if got := fmt.Sprint(queued(t, st)); got != "map[a:a! [{repaired yes}] b:b! [{repaired yes}]]" {
		t.Error(got)
	}
}

// A letter that may not go when it is read, and may a moment later, does not go without its edit.
func TestNoneGoesWithoutItsEdit(t *testing.T) {
	st := adopted(t, "a", "review")
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := editAll(t.Context(), t, st, redrive.Destination{Transform: func(ctx context.Context, r *broker.Returning) error {
		for _, l := range letters {
			for _, on := range []store.Event{store.OnHold, store.OnUnhold} {
				if errs := st.Resolve(ctx, []store.Resolution{{Letter: l.ID, Event: on, Actor: "bob",
					Reviewed: on == store.OnUnhold}}); errs[0] != nil {
					t.Error(errs[0])
				}
			}
		}
		r.Value = []byte("edited")
		return nil
	}}, nixie.ID{})
	if err != nil || r.Done != 0 || r.Skipped != 2 ||
		!strings.Contains(r.Refused[0].Why+r.Refused[1].Why, "has changed since it was read to be edited") {
		t.Errorf("%+v, %v", r, err)
	}
	if got := queued(t, st); len(got) > 0 {
		t.Errorf("%v went", got)
	}
}

// A redrive that is interrupted in an edit keeps the edits that it made, and goes on.
func TestInterruptedInAnEdit(t *testing.T) {
	st := adopted(t, "a", "b", "c")
	ctx, stop := context.WithCancel(t.Context())
	route := redrive.Destination{Transform: func(ctx context.Context, r *broker.Returning) error {
		if string(r.Value) == "b" {
			stop()
			return ctx.Err()
		}
		r.Value = append(r.Value, '!')
		return nil
	}}
	r, err := editAll(ctx, t, st, route, nixie.ID{})
	if nixie.CodeOf(err) != nixie.CodeUnavailable || r.Done != 1 || r.Pending != 2 || r.Skipped != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	route.Transform = func(_ context.Context, r *broker.Returning) error { r.Value = append(r.Value, '?'); return nil }
	if r, err = editAll(t.Context(), t, st, route, r.ID); err != nil || r.Done != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := fmt.Sprint(queued(t, st)); got != "map[a:a! [] b:b? [] c:c? []]" {
		t.Error(got)
	}
}

// Only the destination changes letters that go to a broker: Edit and Send exclude each other.
func TestSendAndEditExcludeEachOther(t *testing.T) {
	edit, err := redrive.Destination{}.Edits()
	if err != nil {
		t.Fatal(err)
	}
	send := func(context.Context, []nixie.Letter) []error { return nil }
	if _, err := redrive.New(redrive.Config{Store: adopted(t), Send: send, Edit: edit}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Error(err)
	}
	ours := redrive.Destination{Set: []broker.RecordHeader{{Name: broker.HeaderRedriveID}}}
	if _, err := ours.Edits(); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Error(err)
	}
}
