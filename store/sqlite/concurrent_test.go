package sqlite_test

import (
	"context"
	"fmt"
	"runtime"
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

// locked holds the store's lock as another program does, until free is called.
func locked(t *testing.T, path string) (free func()) {
	t.Helper()
	c, err := zs.OpenConn(path, zs.OpenReadWrite)
	must(t, err)
	must(t, sqlitex.ExecuteTransient(c, "begin immediate", nil))
	return sync.OnceFunc(func() {
		must(t, sqlitex.ExecuteTransient(c, "rollback", nil))
		must(t, c.Close())
	})
}

// queued lets n calls that write wait until all of them are there, so that they
// share one transaction.
func queued(t *testing.T, s *sqlite.Store, n int, call func(i int)) {
	t.Helper()
	fill(t, s, "plug", 1)
	free := locked(t, s.Path())
	defer free()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Enqueue(context.Background(), nixie.Message{Queue: "plug"}); err != nil {
			t.Error(err)
		}
	})
	for in := false; !in; { // the plug waits for the lock, alone
		var err error
		in, err = s.SeatIsTaken()
		must(t, err)
	}
	for i := range n {
		wg.Go(func() { call(i) })
	}
	for s.Waiting() < n {
		runtime.Gosched()
	}
	free()
	wg.Wait()
}

// TestFirstClaimsRegisterOnce lets many first claims meet in one transaction.
func TestFirstClaimsRegisterOnce(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	fill(t, s, "q", 200)
	queued(t, s, 50, func(int) {
		if _, err := s.Claim(context.Background(), "q", nixie.Want{Max: 1}); err != nil {
			t.Error(err)
		}
	})
	h, err := s.Inspect(t.Context())
	must(t, err)
	if len(h.Owners) != 1 {
		t.Errorf("one process is %d owners", len(h.Owners))
	}
}

// TestAFailingCallHoldsUpNobody commits a group of which some fail.
func TestAFailingCallHoldsUpNobody(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "taken"})
	must(t, err)
	const calls = 100
	queued(t, s, calls, func(i int) {
		m := []nixie.Message{{Queue: "q", Key: fmt.Sprint(i)}, {Queue: "q", Key: fmt.Sprint(i, "b")}}
		if i%5 == 0 {
			m[1].DedupeKey, m[1].OnConflict = "taken", nixie.FailOnConflict
		}
		_, err := s.Enqueue(context.Background(), m...)
		if want := map[bool]nixie.Code{true: nixie.CodeConflict}[i%5 == 0]; nixie.CodeOf(err) != want {
			t.Errorf("call %d: %v, want %q", i, err, want)
		}
	})
	qs, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	for i := range qs {
		if want := int64(1 + calls*4/5*2); qs[i].Name == "q" && qs[i].Ready != want {
			t.Errorf("%d messages, want %d: a refused call is whole or not at all", qs[i].Ready, want)
		}
	}
	storetest.Invariants(t, s)
}

// TestB060_ALockedStoreAnswersAll gives every waiting call its answer after one wait,
// not one after the other.
func TestB060_ALockedStoreAnswersAll(t *testing.T) {
	const wait, calls = 200 * time.Millisecond, 40
	s := open(t, "", sqlite.Options{Reserve: -1, LockWait: wait})
	free := locked(t, s.Path())
	start := time.Now()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if _, err := s.Enqueue(context.Background(), nixie.Message{Queue: "q"}); nixie.CodeOf(err) != nixie.CodeUnavailable {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > calls/2*wait {
		t.Errorf("%d calls waited %s together, one waits %s", calls, took, wait)
	}
	free()
	fill(t, s, "q", 1)
}

// TestCloseLeavesNoHolder closes a store that holds messages. No process holds them any more,
// before another process sweeps.
func TestCloseLeavesNoHolder(t *testing.T) {
	path := storePath(t)
	s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
	must(t, err)
	fill(t, s, "q", 100)
	_, err = s.Claim(t.Context(), "q", nixie.Want{Max: 50, Lease: time.Hour})
	must(t, err)
	must(t, s.Close())
	h, err := open(t, path, sqlite.Options{Reserve: -1}).Inspect(t.Context())
	must(t, err)
	if len(h.Owners) != 0 || !h.OldestLease.IsZero() {
		t.Errorf("after a clean end: %+v, lease until %s", h.Owners, h.OldestLease)
	}
}
