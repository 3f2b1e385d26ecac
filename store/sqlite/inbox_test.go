package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

const (
	inboxRounds = 200
	inboxPeers  = 16
	inboxSeed   = 20261121
)

// TestR46_InboxStoresADuplicateOnce lets sixteen consumers, half of them with
// another handle on the file as in another process, get the same message at
// once in each round. Three in ten roll back after they did their work. The work
// is done once if any transaction commits, and a transaction that rolled back leaves nothing.
func TestR46_InboxStoresADuplicateOnce(t *testing.T) {
	path := storePath(t)
	stores := [2]*sqlite.Store{open(t, path, sqlite.Options{Reserve: -1}), open(t, path, sqlite.Options{Reserve: -1})}
	db, err := stores[0].DB()
	must(t, err)
	execute(t, db, "create table effect (round integer, by integer)")
	rng := rand.New(rand.NewPCG(inboxSeed, 0))
	rounds := inboxRounds
	if testing.Short() {
		rounds /= 10
	}
	empty := 0
	for round := range rounds {
		var rollsBack, committed [inboxPeers]bool
		anyCommits := false
		for i := range rollsBack {
			rollsBack[i] = rng.IntN(10) < 3 || round%50 == 49
			anyCommits = anyCommits || !rollsBack[i]
		}
		together(inboxPeers, func(i int) {
			var err error
			if committed[i], err = consume(stores[i%2], round, i, rollsBack[i]); err != nil {
				t.Error(err)
			}
		})
		effects, by := 0, -1
		must(t, db.QueryRow("select count(*), coalesce(max(by), -1) from effect where round = ?", round).Scan(&effects, &by))
		winners := 0
		for _, c := range committed {
			if c {
				winners++
			}
		}
		if !anyCommits {
			empty++
		}
		if (effects == 1) != anyCommits || effects != winners || by >= 0 && !committed[by] {
			t.Fatalf("round %d: %d effects, the last by %d, %d committed, one was to commit: %t", round, effects, by, winners, anyCommits)
		}
	}
	if empty == rounds {
		t.Error("no transaction ever committed")
	}
	storetest.Invariants(t, stores[0])
}

// consume does the work of a round unless it is done, and reports whether its
// work was committed.
func consume(s *sqlite.Store, round, by int, rollBack bool) (did bool, err error) {
	db, err := s.DB()
	if err != nil {
		return false, err
	}
	tx, err := db.Begin()
	if err != nil {
		return false, err
	}
	first, err := s.Tx(tx).Once(context.Background(), "consumer", fmt.Sprint(round))
	if err == nil && first {
		_, err = tx.Exec("insert into effect (round, by) values (?, ?)", round, by)
	}
	end := tx.Commit
	if rollBack {
		end = tx.Rollback
	}
	return first && !rollBack, errors.Join(err, end())
}

// TestPruneInbox forgets what is old enough, in parts, and nothing else.
func TestPruneInbox(t *testing.T) {
	clock := storetest.NewClock()
	s := open(t, "", sqlite.Options{Clock: clock.Now, Reserve: -1})
	first := func(key string) bool {
		tx := begin(t, s)
		first, err := s.Tx(tx).Once(t.Context(), "s", key)
		must(t, err)
		must(t, tx.Commit())
		return first
	}
	first("old")
	db, err := s.DB()
	must(t, err)
	execute(t, db, `insert into inbox (scope, key, at)
		with recursive r(n) as (select 1 union all select n + 1 from r where n < 25000)
		select 'bulk', 'k' || n, ? from r`, clock.Now().UnixNano())
	clock.Advance(time.Hour)
	first("new")
	if n, err := s.PruneInbox(t.Context(), time.Hour+time.Millisecond); n != 0 || err != nil {
		t.Errorf("%d pruned too early, %v", n, err)
	}
	if n, err := s.PruneInbox(t.Context(), time.Hour); n != 25001 || err != nil {
		t.Errorf("%d pruned, %v", n, err)
	}
	if !first("old") || first("new") {
		t.Error("the old key has to be gone and the new one to be there")
	}
	if _, err := s.PruneInbox(t.Context(), -time.Second); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("negative age: %v", err)
	}
}

// TestPruneForgetsKeys: retention has the inboxes as well, step by step, and goes
// on with what the queues keep.
func TestPruneForgetsKeys(t *testing.T) {
	clock := storetest.NewClock()
	s := open(t, "", sqlite.Options{Clock: clock.Now, Reserve: -1})
	told := func(keys ...string) {
		tx := begin(t, s)
		for _, key := range keys {
			_, err := s.Tx(tx).Once(t.Context(), "s", key)
			must(t, err)
		}
		must(t, tx.Commit())
	}
	prune := func(dry bool) (keys, messages int64) {
		for p := (store.Pruning{Limit: 2, DryRun: dry}); ; {
			done, err := s.Prune(t.Context(), p)
			must(t, err)
			if done.Keys+done.Messages > int64(p.Limit) {
				t.Fatalf("a step of %d removed %+v", p.Limit, done)
			}
			keys, messages = keys+done.Keys, messages+done.Messages
			if p.Cursor = done.Next; p.Cursor == "" {
				return keys, messages
			}
		}
	}
	told("1", "2", "3", "4", "5")
	receipts, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, s.Amend(t.Context(), []nixie.ID{receipts[0].ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0])
	clock.Advance(store.InboxRetention - time.Millisecond)
	told("6")
	if keys, _ := prune(true); keys != 0 {
		t.Errorf("%d keys are too young", keys)
	}
	clock.Advance(time.Millisecond)
	for _, dry := range []bool{true, false} {
		if keys, messages := prune(dry); keys != 5 || messages != 1 {
			t.Errorf("dry run %t: %d keys and %d messages", dry, keys, messages)
		}
	}
	if keys, messages := prune(false); keys != 0 || messages != 0 {
		t.Errorf("again: %d keys and %d messages", keys, messages)
	}
	clock.Advance(store.InboxRetention)
	if keys, _ := prune(false); keys != 1 {
		t.Errorf("%d keys, one was left", keys)
	}
}
