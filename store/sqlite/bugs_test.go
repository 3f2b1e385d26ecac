package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// The tests of this file and of the files next to it are named after defects that
// systems of this kind have had: docs/trust.md says where and what, by number, and
// which other tests would find the rest.

// pair is two processes on one store with a clock of their own.
func pair(t *testing.T) (a, b *sqlite.Store, clock *storetest.Clock) {
	t.Helper()
	clock = storetest.NewClock()
	path := storePath(t)
	a = open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1, Owner: "a"})
	return a, open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1, Owner: "b"}), clock
}

func one(t *testing.T, s *sqlite.Store, queue string) *nixie.Delivery {
	t.Helper()
	ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1, Lease: time.Minute})
	must(t, err)
	if len(ds) != 1 {
		t.Fatalf("%d deliveries", len(ds))
	}
	return ds[0]
}

func settle(t *testing.T, s *sqlite.Store, d *nixie.Delivery, verb nixie.Verb) nixie.Code {
	t.Helper()
	return nixie.CodeOf(s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: verb}})[0])
}

// together runs n calls at once.
func together(n int, call func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	wg.Wait()
}

// A lease is found from the state alone: without the row of its owner it still
// ends by time.
func TestB005_LeaseWithoutItsOwner(t *testing.T) {
	a, b, clock := pair(t)
	fill(t, a, "q", 1)
	one(t, a, "q")
	damage(t, a.Path(), "delete from owner")
	clock.Advance(2 * time.Minute)
	if d := one(t, b, "q"); !d.Abandoned || d.Crashes != 1 {
		t.Errorf("%+v", d)
	}
}

// A claim that reads its messages when its leases are over and others have redriven one of
// them hands out what it finds; it is not told that the store is damaged.
func TestClaimThatReadsLate(t *testing.T) {
	a, b, clock := pair(t)
	fill(t, a, "q", 2)
	read, err := a.ClaimSlowly(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Minute})
	must(t, err)
	clock.Advance(2 * time.Minute)
	judged, err := b.Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Minute})
	if err != nil || len(judged) != 2 {
		t.Fatal(judged, err)
	}
	must(t, b.Settle(t.Context(), []nixie.Settlement{{
		Delivery: judged[0], Verb: nixie.Bury, Failure: &nixie.Failure{Text: "boom", FailedAt: clock.Now()},
		Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "v1:a"},
	}})[0])
	letters, _, err := b.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	must(t, b.Resolve(t.Context(), []store.Resolution{{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "ann", Force: true}})[0])
	late, err := read()
	if err != nil || len(late) != 1 || late[0].ID == judged[0].ID {
		t.Fatalf("%d deliveries, %v", len(late), err)
	}
	if code := settle(t, a, late[0], nixie.Complete); code != nixie.CodeLeaseLost {
		t.Errorf("its settlement got %s", code)
	}
}

// Two connections write and checkpoint at once; nothing committed is lost.
func TestB039_WriteAndCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	a, b := open(t, path, sqlite.Options{Reserve: -1}), open(t, path, sqlite.Options{Reserve: -1})
	other, err := zs.OpenConn(path, zs.OpenReadWrite)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	checkpoints := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			// It is told when it cannot have its way, and tries again.
			_ = sqlitex.ExecuteTransient(other, [...]string{"pragma wal_checkpoint(truncate)", "pragma wal_checkpoint(passive)"}[n%2], nil)
		}
		checkpoints <- n
	}()
	const each = 150
	var wg sync.WaitGroup
	for i, s := range []*sqlite.Store{a, b} {
		wg.Go(func() {
			for n := range each {
				if _, err := s.Enqueue(context.Background(),
					nixie.Message{Queue: "q", Key: fmt.Sprint(i, n), Body: make([]byte, 3000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stop()
	t.Logf("%d checkpoints", <-checkpoints)
	must(t, other.Close())
	if n := unfinished(t, a); n != 2*each {
		t.Errorf("%d of %d messages", n, 2*each)
	}
	storetest.Invariants(t, a)
}

// Processes that open a new store at once, and write at once, wait for each
// other instead of failing.
func TestB043_ContentionWaits(t *testing.T) {
	path := storePath(t)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
			if err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				if _, err := s.Enqueue(context.Background(), nixie.Message{Queue: "q"}); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := unfinished(t, open(t, path, sqlite.Options{Reserve: -1})); n != 120 {
		t.Errorf("%d of 120 messages", n)
	}
}

// A message that kills each of its holders is counted each time.
func TestB071_KillerOfHolders(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 1)
	for n := 1; n <= 3; n++ {
		holder := startChild(t, "hold", path, time.Hour.Milliseconds())
		if words := holder.Line(); words[1] != "1" {
			t.Fatal(words)
		}
		holder.Kill()
		d := one(t, s, "q")
		if !d.Abandoned || d.Crashes != n || d.Attempts != 0 {
			t.Fatalf("after %d kills: %+v", n, d)
		}
		if c := settle(t, s, d, nixie.Retry); c != "" {
			t.Fatal(c)
		}
	}
}
