package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// The tests of this file and of those beside it are named after defects that
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

// A rescuer does not take back what was completed or claimed again meanwhile.
func TestB001_RescueOfWhatMovedOn(t *testing.T) {
	a, b, clock := pair(t)
	fill(t, a, "q", 2)
	first, second := one(t, a, "q"), one(t, a, "q")
	if c := settle(t, a, first, nixie.Complete); c != "" {
		t.Fatal(c)
	}
	clock.Advance(2 * time.Minute)
	again := one(t, b, "q")
	if again.ID != second.ID || !again.Abandoned {
		t.Errorf("rescued %s", again.ID)
	}
	if ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: 9}); err != nil || len(ds) != 0 {
		t.Errorf("rescued twice: %v %v", ds, err)
	}
	if c := settle(t, a, second, nixie.Complete); c != nixie.CodeLeaseLost {
		t.Errorf("the first holder got %q", c)
	}
	if c := settle(t, b, again, nixie.Complete); c != "" {
		t.Error(c)
	}
	storetest.Invariants(t, a)
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

// Thirty-two claimers of due jobs get each one once.
func TestB007_ManyClaimersOfDueJobs(t *testing.T) {
	a, b, clock := pair(t)
	const rounds, each = 20, 40
	for round := range rounds {
		ms := make([]nixie.Message, each)
		for i := range ms {
			ms[i] = nixie.Message{Queue: "q", Key: fmt.Sprint(round, " ", i), Delay: time.Second}
		}
		_, err := a.Enqueue(t.Context(), ms...)
		must(t, err)
		clock.Advance(2 * time.Second)
		var mu sync.Mutex
		seen := map[nixie.ID]int{}
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				s := [...]*sqlite.Store{a, b}[i%2]
				ds, err := s.Claim(context.Background(), "q", nixie.Want{Max: 3, Lease: time.Hour})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, d := range ds {
					seen[d.ID]++
				}
			})
		}
		wg.Wait()
		if len(seen) != each {
			t.Fatalf("round %d: %d of %d were claimed", round, len(seen), each)
		}
		for id, n := range seen {
			if n != 1 {
				t.Fatalf("round %d: %s was claimed %d times", round, id, n)
			}
		}
	}
}

// Two sweepers see the same expired lease; one of them counts it.
func TestB008_TwoSweepers(t *testing.T) {
	a, b, clock := pair(t)
	fill(t, a, "q", 10)
	ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: 10, Lease: time.Minute})
	must(t, err)
	clock.Advance(2 * time.Minute)
	together(20, func(i int) {
		if _, err := [...]*sqlite.Store{a, b}[i%2].Claim(context.Background(), "other", nixie.Want{Max: 1}); err != nil {
			t.Error(err)
		}
	})
	ms, _, err := a.Messages(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	for i := range ms {
		if ms[i].Crashes != 1 || ms[i].State != nixie.Queued {
			t.Errorf("message %s is %s after %d crashes", ms[i].ID, ms[i].State, ms[i].Crashes)
		}
	}
	if len(ms) != len(ds) {
		t.Errorf("%d messages", len(ms))
	}
}

// A message that two actors end has one end.
func TestB011_EndedTwice(t *testing.T) {
	a, b, _ := pair(t)
	fill(t, a, "q", 1)
	d := one(t, a, "q")
	answers := make([]error, 20)
	together(len(answers), func(i int) {
		s := [...]*sqlite.Store{a, b}[i%2]
		switch i % 3 {
		case 0:
			answers[i] = s.Amend(context.Background(), []nixie.ID{d.ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0]
		default:
			answers[i] = s.Settle(context.Background(), []nixie.Settlement{{Delivery: d, Verb: [...]nixie.Verb{nixie.Complete, nixie.Discard}[i%2]}})[0]
		}
	})
	won := 0
	for _, err := range answers {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d actors ended the message", won)
	}
	storetest.Invariants(t, a)
}

// The rest of a batch can be claimed at once after a stop.
func TestB032_RestOfABatch(t *testing.T) {
	a, b, _ := pair(t)
	fill(t, a, "q", 10)
	ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: 10, Lease: time.Hour})
	must(t, err)
	for i, d := range ds {
		if c := settle(t, a, d, map[bool]nixie.Verb{true: nixie.Complete, false: nixie.Release}[i < 3]); c != "" {
			t.Fatal(c)
		}
	}
	again, err := b.Claim(t.Context(), "q", nixie.Want{Max: 10})
	must(t, err)
	if len(again) != 7 {
		t.Errorf("%d of 7", len(again))
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
				if _, err := s.Enqueue(context.Background(), nixie.Message{Queue: "q", Key: fmt.Sprint(i, n), Body: make([]byte, 3000)}); err != nil {
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

// What cannot be handed out does not stand in the way of what can.
func TestB056_MuchThatIsNotDue(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	ms := make([]nixie.Message, nixie.MaxBatch)
	for i := range ms {
		ms[i] = nixie.Message{Queue: "q", Delay: time.Hour, Priority: i % 5}
	}
	_, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "due", Priority: nixie.MinPriority}, nixie.Message{Queue: "q", Key: "plain"})
	must(t, err)
	start := time.Now()
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10})
	must(t, err)
	if took := time.Since(start); len(ds) != 2 || took > time.Second {
		t.Errorf("%d deliveries after %s", len(ds), took)
	}
}

// Of many producers that offer one key at once, in two processes, one makes a
// message; the others are told which, whether they are refused or not.
func TestB062_ProducersOfOneKey(t *testing.T) {
	a, b, _ := pair(t)
	for round := range 50 {
		var made atomic.Int64
		told := make([]nixie.ID, 32)
		together(len(told), func(i int) {
			m := nixie.Message{Queue: "q", DedupeKey: fmt.Sprint(round)}
			if i%4 < 2 {
				m.OnConflict = nixie.FailOnConflict
			}
			receipts, err := [...]*sqlite.Store{a, b}[i%2].Enqueue(context.Background(), m)
			var taken *nixie.DuplicateError
			switch {
			case errors.As(err, &taken):
				told[i] = taken.Existing
			case err != nil:
				t.Error(err)
			default:
				told[i] = receipts[0].ID
				if !receipts[0].Duplicate {
					made.Add(1)
				}
			}
		})
		slices.SortFunc(told, func(x, y nixie.ID) int { return bytes.Compare(x[:], y[:]) })
		if told = slices.Compact(told); made.Load() != 1 || len(told) != 1 || told[0].IsZero() {
			t.Fatalf("round %d: %d producers made a message, holders are %v", round, made.Load(), told)
		}
	}
	storetest.Invariants(t, a)
}

// Whatever ends a message frees its key, and only its holder can.
func TestB063_KeysAreFreeAtOnce(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	for _, way := range []string{"complete", "discard", "cancel queued", "cancel leased"} {
		r, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "k"})
		must(t, err)
		if r[0].Duplicate {
			t.Fatalf("before %s the key is taken", way)
		}
		if way != "cancel queued" {
			d := one(t, s, "q")
			if way != "cancel leased" {
				if c := settle(t, s, d, nixie.Verb(way)); c != "" {
					t.Fatal(c)
				}
				continue
			}
		}
		must(t, s.Amend(t.Context(), []nixie.ID{r[0].ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0])
	}
}

func TestB065_LateFinisherKeepsItsHandsOff(t *testing.T) {
	a, b, clock := pair(t)
	enqueue := func() bool {
		r, err := a.Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "k"})
		must(t, err)
		return r[0].Duplicate
	}
	enqueue()
	late := one(t, a, "q")
	clock.Advance(2 * time.Minute)
	if c := settle(t, b, one(t, b, "q"), nixie.Complete); c != "" {
		t.Fatal(c)
	}
	if enqueue() {
		t.Fatal("the key is not free")
	}
	if c := settle(t, a, late, nixie.Complete); c != nixie.CodeLeaseLost {
		t.Errorf("the late one got %q", c)
	}
	if !enqueue() {
		t.Error("the late one freed the key of another")
	}
}

// Members of one claim are leased by one row. One that went on since, to a later
// life or to another queue, is no member any more, and its late finisher is
// refused. It used to be counted as one of the others, one of which was lost.
func TestLateFinisherOfWhatWentOn(t *testing.T) {
	late := map[string]func(t *testing.T, s *sqlite.Store, d *nixie.Delivery){
		"redriven": func(t *testing.T, s *sqlite.Store, d *nixie.Delivery) {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury, Failure: &nixie.Failure{Text: "no"}, Burial: &nixie.Burial{Status: nixie.StatusOpen, Fingerprint: "f"}}})[0])
			ls, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
			must(t, err)
			must(t, s.Resolve(t.Context(), []store.Resolution{{Letter: ls[0].ID, Event: nixie.OnRedrive, Actor: "ann", Force: true}})[0])
		},
		"moved": func(t *testing.T, s *sqlite.Store, d *nixie.Delivery) {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Release}})[0])
			must(t, s.Amend(t.Context(), []nixie.ID{d.ID}, store.Change{Verb: store.Move, Queue: "other", Actor: "ann"})[0])
		},
	}
	for name, goOn := range late {
		for _, receipt := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/receipt=%t", name, receipt), func(t *testing.T) {
				a, _, _ := pair(t)
				fill(t, a, "q", 2)
				ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Hour})
				must(t, err)
				goOn(t, a, ds[0])
				if !receipt {
					ds[0].Lease.Receipt, ds[1].Lease.Receipt = nixie.Receipted{}, nixie.Receipted{}
				}
				for _, verb := range []nixie.Verb{nixie.Complete, nixie.Retry} {
					if c := settle(t, a, ds[0], verb); c != nixie.CodeLeaseLost {
						t.Errorf("late %s got %q", verb, c)
					}
				}
				if c := settle(t, a, ds[1], nixie.Complete); c != "" {
					t.Errorf("the other one got %q", c)
				}
				storetest.Invariants(t, a)
			})
		}
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
		if !d.Abandoned || d.Crashes != n || d.Attempts != n {
			t.Fatalf("after %d kills: %+v", n, d)
		}
		if c := settle(t, s, d, nixie.Retry); c != "" {
			t.Fatal(c)
		}
	}
}

// Giving back what was not started burns nothing.
func TestB072_ReleasedAHundredTimes(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	fill(t, s, "q", 1)
	for n := 1; n <= 100; n++ {
		d := one(t, s, "q")
		if d.Attempts != 1 || d.Deliveries != n {
			t.Fatalf("%d attempts, %d deliveries", d.Attempts, d.Deliveries)
		}
		if c := settle(t, s, d, nixie.Release); c != "" {
			t.Fatal(c)
		}
	}
}
