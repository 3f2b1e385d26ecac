package sqlite_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// patience limits the wait of a claim in these tests.
const patience = 20 * time.Second

// awaited holds the answer to a waiting claim.
type awaited struct {
	ds  []*nixie.Delivery
	err error
}

// await waits for work of queue q in the background, and returns once it waits.
func await(ctx context.Context, s *sqlite.Store) <-chan awaited {
	got := make(chan awaited, 1)
	idle := s.Features().Wake("q")
	go func() {
		ds, err := s.Features().Await(ctx, "q", nixie.Want{Max: 10, Wait: patience, Lease: time.Minute, LogProgress: true}, idle)
		got <- awaited{ds, err}
	}()
	for s.Waiters("q") == 0 {
		runtime.Gosched()
	}
	return got
}

// TestAwaitIsPartOfTheCommit has a message handed out by the commit that brings
// it: no other process sees it queued.
func TestAwaitIsPartOfTheCommit(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	got := await(t.Context(), s)
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	records, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	if records[0].State != nixie.Leased {
		t.Errorf("the message is %s after its enqueue, though a claim waited for it", records[0].State)
	}
	a := <-got
	must(t, a.err)
	if len(a.ds) != 1 {
		t.Fatalf("%d deliveries", len(a.ds))
	}
	must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: a.ds[0], Verb: nixie.Complete}})[0])
	storetest.Invariants(t, s)
}

// TestAwaitFailsAlone lets a claim fail that waits for work: who brings the work
// does not hear of it.
func TestAwaitFailsAlone(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "other"})
	must(t, err)
	got := await(t.Context(), s)
	// A claim needs a file in this folder, which shows other processes that it is alive.
	must(t, os.RemoveAll(path+"-owners"))
	must(t, os.WriteFile(path+"-owners", nil, 0o600))
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	if a := <-got; a.err == nil || len(a.ds) > 0 {
		t.Errorf("a claim that cannot register returned %d deliveries and error %v", len(a.ds), a.err)
	}
	must(t, os.Remove(path+"-owners"))
	must(t, os.Mkdir(path+"-owners", 0o700))
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10, Lease: time.Minute})
	must(t, err)
	if len(ds) != 1 {
		t.Errorf("%d deliveries", len(ds))
	}
	storetest.Invariants(t, s)
}

// TestAwaitOnAStoreThatCloses leaves no claim behind and none that stands.
func TestAwaitOnAStoreThatCloses(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Delay: time.Hour})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	got := await(ctx, s)
	must(t, s.Close())
	stop()
	if a := <-got; a.err == nil || len(a.ds) > 0 {
		t.Errorf("%d deliveries and error %v", len(a.ds), a.err)
	}
	if n := s.Waiters("q"); n != 0 {
		t.Errorf("%d claims wait still", n)
	}
}

// TestAwaitHearsOfTransactions wakes a claim when a transaction of the caller
// commits.
func TestAwaitHearsOfTransactions(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	got := await(t.Context(), s)
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, tx.Commit())
	if a := <-got; a.err != nil || len(a.ds) != 1 {
		t.Errorf("%d deliveries and error %v", len(a.ds), a.err)
	}
}
