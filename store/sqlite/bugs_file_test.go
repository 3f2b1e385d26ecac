package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// One lease that cannot be read does not keep the others from being taken back.
func TestB009_OneBadLeaseAmongAHundred(t *testing.T) {
	a, b, clock := pair(t)
	const each = 50
	for i := range 2 * each {
		_, err := a.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2, Body: []byte("body")})
		must(t, err)
	}
	ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: 2 * each, Lease: time.Minute})
	must(t, err)
	if len(ds) != 2*each {
		t.Fatalf("%d were claimed", len(ds))
	}
	damage(t, a.Path(), "update pending set steps = '!' where pos = (select pos from message where key = '1')")
	damage(t, a.Path(), "update message set headers = '{', body = x'00' where key in ('0', '3')")
	damage(t, a.Path(), "update pending set owner = 999999 where pos = (select pos from message where key = '5')")
	clock.Advance(2 * time.Minute)
	back := map[string]bool{}
	judged, err := b.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	for _, d := range judged {
		if !d.Abandoned || back[d.Key] {
			t.Fatalf("message %s: abandoned %v, seen before %v", d.Key, d.Abandoned, back[d.Key])
		}
		back[d.Key] = true
	}
	if len(back) != 2*each {
		t.Errorf("%d of %d came back", len(back), 2*each)
	}
}

// A process that comes back under the name of the one that died does not make the
// leases of the dead one look held.
func TestB016_SameNameAfterARestart(t *testing.T) {
	clock := storetest.NewClock()
	path := storePath(t)
	opts := sqlite.Options{Clock: clock.Now, Reserve: -1, Owner: "host:1"}
	dead := open(t, path, opts)
	fill(t, dead, "q", 1)
	_, err := dead.Enqueue(t.Context(), nixie.Message{Queue: "q", Priority: 1})
	must(t, err)
	ds, err := dead.Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Hour})
	must(t, err)
	if len(ds) != 2 {
		t.Fatalf("%d were claimed", len(ds))
	}
	dead.Crash()
	again := open(t, path, opts)
	fill(t, again, "other", 1)
	one(t, again, "other")
	judged, err := again.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	if len(judged) != len(ds) {
		t.Errorf("%d are to be judged", len(judged))
	}
	for _, d := range judged {
		if !d.Abandoned || d.AbandonedBy != "host:1" || d.Lease.Number != 2 {
			t.Errorf("%+v", d)
		}
	}
}

// The engine is one that does not have the race of writing and checkpointing.
func TestB039_EngineIsNewEnough(t *testing.T) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(sqlite.EngineVersion(), "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	if have, want := []int{major, minor, patch}, []int{3, 51, 3}; slices.Compare(have, want) < 0 {
		t.Errorf("SQLite %s can lose committed transactions: 3.51.3 is the first that cannot", sqlite.EngineVersion())
	}
}

// A query that is canceled while its rows are read never returns rows of another.
func TestB040_CanceledQueriesDoNotMixRows(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	execute(t, db, "create table app_row (side integer, n integer)")
	for side := range 2 {
		execute(t, db, "insert into app_row with recursive r(n) as (select 1 union all select n+1 from r where n < 50) select ?, n from r",
			side)
	}
	together(4, func(i int) {
		for n := range 200 {
			if err := readSome(db, i%2, n%50); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if left := db.Stats().InUse; left != 0 {
		t.Errorf("%d connections are still in use", left)
	}
}

// readSome reads the rows of one side in order and leaves after some of them.
func readSome(db *sql.DB, side, after int) (err error) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	rows, err := db.QueryContext(ctx, "select side, n from app_row where side = ? order by n", side)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for want := 1; rows.Next(); want++ {
		if want == after {
			leave()
		}
		got, n := -1, -1
		if err := rows.Scan(&got, &n); err != nil {
			return ended(err)
		}
		if got != side || n != want {
			return fmt.Errorf("row %d of side %d, want row %d of side %d", n, got, want, side)
		}
	}
	return ended(rows.Err())
}

// ended is nil for the error of who left.
func ended(err error) error {
	if errors.Is(err, context.Canceled) || nixie.CodeOf(err) != "" {
		return nil
	}
	return err
}

// Who loses a key to a transaction that is rolled back is in the queue itself.
func TestB061_WinnersThatRollBack(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	for round := range 30 {
		key := fmt.Sprint(round)
		tx := begin(t, s)
		first, err := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: key, Body: []byte("winner")})
		must(t, err)
		var receipts sync.Map
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				r, err := s.Enqueue(context.Background(), nixie.Message{Queue: "q", DedupeKey: key, Body: []byte("loser")})
				if err != nil {
					t.Error(err)
					return
				}
				receipts.Store(i, r[0])
			})
		}
		for s.Inside() < 4 && round%2 == 0 { // half of the rounds end while the others wait
			runtime.Gosched()
		}
		if commits := round%3 != 0; commits {
			must(t, tx.Commit())
		} else {
			must(t, tx.Rollback())
			first = nil
		}
		wg.Wait()
		holders := map[nixie.ID]int{}
		for i := range 4 {
			v, ok := receipts.Load(i)
			if !ok {
				t.Fatal("a caller has no answer")
			}
			r := v.(nixie.Receipt)
			holders[r.ID]++
			if !r.Duplicate {
				first = append(first, r)
			}
		}
		if len(first) != 1 || len(holders) != 1 || holders[first[0].ID] != 4 {
			t.Fatalf("round %d: made by %v, held by %v", round, first, holders)
		}
		if ms, _, err := s.Messages(t.Context(), nixie.Filter{IDs: []nixie.ID{first[0].ID}}, store.Page{}); err != nil || len(ms) != 1 {
			t.Errorf("round %d: a duplicate of %v, %v", round, ms, err)
		}
	}
	storetest.Invariants(t, s)
}

// Positions and numbers go on beyond 32 bits, up to the last that a queue has.
func TestB070_NumbersBeyond32Bits(t *testing.T) {
	for _, last := range []int64{math.MaxInt32 - 1, math.MaxUint32 - 1, 1<<40 - 100} {
		s := open(t, storePath(t), sqlite.Options{Reserve: -1})
		fill(t, s, "q", 1)
		if c := settle(t, s, one(t, s, "q"), nixie.Complete); c != "" {
			t.Fatal(c)
		}
		damage(t, s.Path(), fmt.Sprintf("update queue set last = %d, cursor = %d", last, last))
		for i := range 4 {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2, Stream: "s"})
			must(t, err)
		}
		seen := map[string]bool{}
		for range 4 {
			d := one(t, s, "q")
			seen[d.Key] = true
			if c := settle(t, s, d, nixie.Retry); c != "" {
				t.Fatal(c)
			}
			d = one(t, s, "q")
			if c := settle(t, s, d, nixie.Complete); c != "" {
				t.Fatal(c)
			}
		}
		if len(seen) == 0 || unfinished(t, s) != 0 {
			t.Errorf("after position %d: %v ran, %d are left", last, seen, unfinished(t, s))
		}
	}
}
