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
		in, err = s.InTurn()
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
	qs, err := s.Queues(t.Context())
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

// TestB034_CloseDuringCalls closes a store under all kinds of calls: each is served
// or refused, none hangs, and nobody is left as the holder of anything.
func TestB034_CloseDuringCalls(t *testing.T) {
	for round := range 10 {
		path := storePath(t)
		s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
		must(t, err)
		fill(t, s, "q", 100)
		var wg sync.WaitGroup
		busy := make(chan bool, 64)
		for i := range 12 {
			wg.Go(func() {
				for err := error(nil); nixie.CodeOf(err) != nixie.CodeUnavailable; {
					if err = anyCall(s, i%4); err != nil && nixie.CodeOf(err) != nixie.CodeUnavailable {
						t.Error(err)
						return
					}
					select {
					case busy <- true:
					default:
					}
				}
			})
		}
		for range 20 + round*5 {
			<-busy
		}
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		wg.Wait()
		s = open(t, path, sqlite.Options{Reserve: -1})
		h, err := s.Inspect(t.Context())
		must(t, err)
		if len(h.Owners) != 0 || !h.OldestLease.IsZero() {
			t.Errorf("after a clean end: %+v, lease until %s", h.Owners, h.OldestLease)
		}
		storetest.Invariants(t, s)
	}
}

func anyCall(s *sqlite.Store, kind int) error {
	ctx := context.Background()
	switch kind {
	case 0:
		_, err := s.Enqueue(ctx, nixie.Message{Queue: "q"})
		return err
	case 1:
		_, err := s.Queues(ctx)
		return err
	case 2:
		_, _, err := s.Messages(ctx, nixie.Filter{}, store.Page{})
		return err
	}
	ds, err := s.Claim(ctx, "q", nixie.Want{Max: 2})
	for _, d := range ds {
		if err := s.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0]; err != nil {
			return err
		}
	}
	return err
}

// TestB042_CallersThatLeave cancels calls at every moment, then uses the store
// a thousand times: no connection kept anything, and an outcome that was called
// unknown is one of the two.
func TestB042_CallersThatLeave(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*20*time.Microsecond)
			defer cancel()
			body := []byte("body")
			_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Key: fmt.Sprint(i), Body: body})
			copy(body, "mine") // it is the caller's again
			if c := nixie.CodeOf(err); c != "" && c != nixie.CodeOutcomeUnknown && c != nixie.CodeUnavailable {
				t.Error(err)
			}
			ds, err := s.Claim(ctx, "q", nixie.Want{Max: 1, Lease: time.Hour})
			if c := nixie.CodeOf(err); c == nixie.CodeOutcomeUnknown {
				t.Error("a claim that nobody has")
			}
			for _, d := range ds {
				errs := s.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})
				was := nixie.CodeOf(errs[0])
				state, err := stateOf(s, d.ID)
				if err != nil {
					t.Error(err)
				}
				if done := state == nixie.Succeeded; was == "" && !done || was == nixie.CodeUnavailable && done {
					t.Errorf("settling said %q, the message is %s", was, state)
				}
				if nixie.CodeOf(errs[0]) != was {
					t.Errorf("an answer changed from %q to %v after it was given", was, errs[0])
				}
			}
		})
	}
	wg.Wait()
	fill(t, s, "behind", 1) // calls that were left have had their turn by now
	storetest.Invariants(t, s)
	for i := range 1000 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "after", Key: fmt.Sprint(i)})
		must(t, err)
		ds, err := s.Claim(t.Context(), "after", nixie.Want{Max: 1})
		must(t, err)
		if len(ds) != 1 || ds[0].Key != fmt.Sprint(i) {
			t.Fatalf("claimed %v", ds)
		}
		must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
	}
	storetest.Invariants(t, s)
}

func stateOf(s *sqlite.Store, id nixie.ID) (nixie.State, error) {
	ms, _, err := s.Messages(context.Background(), nixie.Filter{IDs: []nixie.ID{id}}, store.Page{})
	if err != nil || len(ms) != 1 {
		return "", fmt.Errorf("%d messages, %w", len(ms), err)
	}
	return ms[0].State, nil
}
