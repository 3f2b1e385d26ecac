package redrive_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

// The tests of this file are named after defects of similar systems. docs/trust.md describes the
// defects by number.

// A redrive of many pages is killed at each page, while other messages die. It moves each selected
// letter once and removes nothing else.
func TestB082_ManyPagesCrashesAndNewLetters(t *testing.T) {
	clock := newClock()
	first := memory.New(memory.Options{Clock: clock.Now})
	const letters, batch = 45, 6
	bury(t, first, clock, letters, nil)
	op := plan(t, engine(t, redrive.Config{Store: first}, clock), 0)
	late := 0
	for st, runs := first.Join("process 0"), 1; ; runs++ {
		ctx, kill := context.WithCancel(t.Context())
		e := engine(t, redrive.Config{Store: st, Batch: batch, Progress: func(store.Operation) { kill() }}, clock)
		r, err := e.Run(ctx, op.ID)
		kill()
		if r.Selected != letters || r.Selected != r.Done+r.Skipped+r.Failed+r.Pending {
			t.Fatalf("run %d: the counts do not add up: %+v", runs, r.Operation)
		}
		if r.Pending == 0 {
			break
		}
		if err == nil || runs > letters {
			t.Fatalf("run %d ended with %d pending: %v", runs, r.Pending, err)
		}
		st.Crash()
		st = first.Join(fmt.Sprint("process ", runs))
		buryAgain(t, st, clock)
		late++
	}
	if got := once(t, first); got != letters {
		t.Errorf("%d of %d letters were redriven", got, letters)
	}
	// Messages that died again since belong to no plan: their letters are all there and open.
	if got := statuses(t, first); got[nixie.StatusRedriving]+got[nixie.StatusOpen] != letters || got[nixie.StatusOpen] != int64(late) ||
		late == 0 {
		t.Errorf("%v, %d died again", got, late)
	}
}

// buryAgain lets one redriven message die once more.
func buryAgain(t *testing.T, st store.Store, clock *fakeClock) {
	t.Helper()
	buryNext(t, st, clock, func(*nixie.Burial) {})
	clock.Add(time.Second)
}

// One letter that cannot be read does not stop the other 999, and it can be redriven once it is
// repaired.
func TestB085_OneBadOfAThousand(t *testing.T) {
	const letters, bad = 1000, 500
	clock := newClock()
	st := open(t, clock)
	list := make([]nixie.Letter, letters)
	for i := range list {
		list[i] = nixie.Letter{
			Message: nixie.Message{Queue: "orders", Key: fmt.Sprintf("order-%03d", i), Body: []byte("{}")},
			Status:  nixie.StatusOpen, Cause: nixie.CauseExhausted, Redrivable: true, Signature: "timeout: slow", Fingerprint: "v1-a",
			DiedAt: clock.Now(),
		}
	}
	_, errs := st.Adopt(t.Context(), list, "ann", "test")
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, st, fmt.Sprintf("update log set state = 2 where pos = (select pos from message where key = 'order-%03d')", bad))
	e := engine(t, redrive.Config{Store: st}, clock)
	r, err := e.Run(t.Context(), plan(t, e, 0).ID)
	if err != nil || r.Done != letters-1 || r.Failed != 1 || r.Skipped+r.Pending != 0 || len(r.Refused) != 1 {
		t.Fatalf("%+v, %v", r.Operation, err)
	}
	run(t, st, fmt.Sprintf("update log set state = 5 where pos = (select pos from message where key = 'order-%03d')", bad))
	r, err = e.Run(t.Context(), plan(t, e, 0).ID)
	if err != nil || r.Selected != 1 || r.Done != 1 {
		t.Errorf("repaired: %+v, %v", r, err)
	}
}

// run changes the file of a store behind its back.
func run(t *testing.T, st *sqlite.Store, sql string) {
	t.Helper()
	db, err := st.DB()
	if err != nil {
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%s changed %d rows, %v", sql, n, err)
	}
}
