package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestOutcomesCostOthersNothing counts what it takes to settle a message. One that was never
// redriven takes as many statements and rows as it did before redrives had outcomes, and none of
// them is about items. One that was redriven takes one more, to its item alone.
func TestOutcomesCostOthersNothing(t *testing.T) {
	s := open(t, server.URL, postgres.Options{Schema: lend(t)})
	settled := func(verb nixie.Verb, d *nixie.Delivery) nixie.Settlement {
		st := nixie.Settlement{Delivery: d, Verb: verb}
		if verb != nixie.Complete {
			st.Failure = &nixie.Failure{Generation: d.Generation, Attempt: d.Attempts, FailedAt: time.Now(), Class: nixie.ClassUnknown,
				Reason: nixie.ReasonHandler, Text: "no"}
		}
		if verb == nixie.Bury {
			st.Burial = &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Fingerprint: "v1:a", Redrivable: true}
		}
		return st
	}
	settle := func(verb nixie.Verb) (items, statements int, rows int64, id nixie.ID) {
		t.Helper()
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
		if err != nil || len(ds) != 1 {
			t.Fatal(len(ds), err)
		}
		run, rows, err := s.SettleHeard(t.Context(), settled(verb, ds[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range run {
			if strings.Contains(query, "item") {
				items++
			}
		}
		return items, len(run), rows, ds[0].ID
	}
	for _, c := range []struct {
		verb       nixie.Verb
		statements int
		rows       int64
	}{{nixie.Complete, 11, 4}, {nixie.Discard, 14, 5}, {nixie.Bury, 18, 8}} {
		if _, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "k"}); err != nil {
			t.Fatal(err)
		}
		items, statements, rows, id := settle(c.verb)
		if items != 0 || statements != c.statements || rows != c.rows {
			t.Errorf("%s took %d statements and %d rows, %d of items; want %d, %d and none", c.verb, statements, rows, items,
				c.statements, c.rows)
		}
		if c.verb != nixie.Bury {
			continue
		}
		op, err := s.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann"}, nixie.Filter{IDs: []nixie.ID{id}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		pending, err := store.FindOperation(t.Context(), s, store.OperationQuery{ID: op.ID, Next: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Resolve(t.Context(), []store.Resolution{{Letter: pending.Next[0], Event: store.OnRedrive, Actor: "ann",
			Operation: op.ID}})[0]; err != nil {
			t.Fatal(err)
		}
		if items, _, _, _ := settle(nixie.Bury); items != 1 {
			t.Errorf("the death of a redriven message took %d statements of items, want 1", items)
		}
	}
}
