package foreign

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	clerks "github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// TestDiedAgain gives a job of each system back, and it dies again: its letter counts the redrive
// and names the letter before. A death without us ends the letter before it. A job that only has
// the ID of another one ends nothing.
func TestDiedAgain(t *testing.T) {
	c, _ := database(t)
	for _, format := range Formats() {
		cfg := Config{Format: format, Adopts: true}
		run(t, c, [][]any{{"FLUSHDB"}})
		o := newOffice(t)
		clerk, err := clerks.New(clerks.Config{Store: o, Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		dies := func(amount, after int) nixie.Letter {
			run(t, c, deadJob(format, amount, after))
			records := readAll(t, c, cfg)
			l := broker.Adopted(format, &records[len(records)-1], "")
			receipts, errs := clerk.AdoptDeaths(t.Context(), []nixie.Letter{l}, "adopted")
			if errs[0] != nil || receipts[0].Duplicate {
				t.Fatalf("%s: %+v, %v", format, receipts[0], errs[0])
			}
			all := o.letters()
			return all[slices.IndexFunc(all, func(l nixie.Letter) bool { return l.ID == receipts[0].ID })]
		}
		first := dies(20, 0)
		o.mustRedrive(c, cfg, first)
		confirmed := store.Resolution{Letter: first.ID, Event: store.OnConfirm, Actor: "ann", Reason: "r"}
		if errs := o.Resolve(t.Context(), []store.Resolution{confirmed}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		second := dies(20, 60)
		if m := second.Message; m.Redrives != 1 || m.Generation != 2 || m.Origin.Earlier != first.ID {
			t.Errorf("%s: redrives %d, earlier %s, want 1 after %s", format, m.Redrives, m.Origin.Earlier, first.ID)
		}
		run(t, c, [][]any{{"FLUSHDB"}, {"SET", serverKey, second.Message.Origin.Server}})
		third := dies(20, 120)
		all := o.letters()
		before := all[slices.IndexFunc(all, func(l nixie.Letter) bool { return l.ID == second.ID })]
		if before.Status != nixie.StatusDiscarded || !strings.HasSuffix(before.Note, "died again, see "+third.ID.String()) {
			t.Errorf("%s: the letter before is %s: %s", format, before.Status, before.Note)
		}
		if third.Message.Redrives != 1 || !third.Message.Origin.Earlier.IsZero() {
			t.Errorf("%s: redrives %d, earlier %s", format, third.Message.Redrives, third.Message.Origin.Earlier)
		}
		if format != "asynq" && format != "celery" {
			continue // their jobs here have one time of creation
		}
		run(t, c, [][]any{{"FLUSHDB"}, {"SET", serverKey, second.Message.Origin.Server}})
		if other := dies(70, 180); other.Message.Redrives != 0 || slices.ContainsFunc(o.letters(), func(l nixie.Letter) bool {
			return l.ID == third.ID && l.Status != nixie.StatusOpen
		}) {
			t.Errorf("%s: another job of that ID counts as the same", format)
		}
	}
}

// A death of unknown time ends no other, and no other ends it: which came first is not known.
func TestADeathWithoutItsTime(t *testing.T) {
	c, _ := database(t)
	cfg, o := Config{Format: "rq", Adopts: true}, newOffice(t)
	clerk, err := clerks.New(clerks.Config{Store: o, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ended := range []string{"2023-11-14T22:13:20.0Z", "", "-5", "yesterday", "2023-11-14T22:14:20.0Z"} {
		run(t, c, [][]any{{"ZADD", "rq:failed:q", "1700000000", "j"}, {"DEL", "rq:job:j"}, {"HSET", "rq:job:j", "data", "d",
			"created_at", "2023-11-14T22:00:00.0Z", "ended_at", ended}})
		records := readAll(t, c, cfg)
		if _, errs := clerk.AdoptDeaths(t.Context(), []nixie.Letter{broker.Adopted("rq", &records[0], "")}, "adopted"); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
	open, all := 0, o.letters()
	for _, l := range all {
		if l.Status == nixie.StatusOpen {
			open++
		}
	}
	if len(all) != 3 || open != 2 { // the first one is over, because the last one is known to be later
		t.Errorf("%d letters, %d open", len(all), open)
	}
}
