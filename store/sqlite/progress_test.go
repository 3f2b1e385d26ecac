package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// progressFile is the only lock file of a store.
func progressFile(t *testing.T, path string) string {
	t.Helper()
	files, err := filepath.Glob(path + "-owners/*.lock")
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("lock files: %q", files)
	}
	return files[0]
}

func claimed(t *testing.T, s *sqlite.Store, n int, lease time.Duration) []*nixie.Delivery {
	t.Helper()
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: n, Lease: lease})
	must(t, err)
	if len(ds) != n {
		t.Fatalf("%d claimed, want %d", len(ds), n)
	}
	return ds
}

func succeeded(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	qs, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	return qs[0].Succeeded
}

// What a power loss leaves of the notes may be older than what was done, cut or
// damaged: what says that it waited does not count then, and what cannot be read
// says nothing. A success stays one.
func TestProgressAfterAPowerLoss(t *testing.T) {
	const slot = 32
	for _, c := range []struct {
		name            string
		hurt            func(file []byte) []byte
		judged, success int64
	}{
		{"whole, same boot", func(f []byte) []byte { return f }, 1, 1},
		{"of another boot", func(f []byte) []byte { clear(f[:slot]); return f }, 2, 1},
		{"first slot damaged", func(f []byte) []byte { f[slot+3] ^= 1; return f }, 2, 1},
		{"last slot damaged", func(f []byte) []byte { f[2*slot+16] ^= 1; return f }, 2, 0},
		{"cut", func(f []byte) []byte { return f[:3*slot-1] }, 2, 0},
		{"lost", func([]byte) []byte { return nil }, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := storePath(t)
			s := open(t, path, sqlite.Options{Reserve: -1})
			fill(t, s, "q", 3)
			ds := claimed(t, s, 3, time.Hour)
			must(t, s.LogProgress(lease.Waiting, ds[0], ds[1]))
			must(t, s.LogProgress(lease.Succeeded, ds[1]))
			s.Crash()
			file, err := os.ReadFile(progressFile(t, path))
			must(t, err)
			must(t, os.WriteFile(progressFile(t, path), c.hurt(file), 0o600))

			s = open(t, path, sqlite.Options{Reserve: -1})
			judged := int64(0)
			for {
				ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
				must(t, err)
				if len(ds) == 0 {
					break
				}
				for _, d := range ds {
					if d.Abandoned {
						judged++
					}
				}
			}
			if n := succeeded(t, s); judged != c.judged || n != c.success {
				t.Errorf("%d judged and %d succeeded, want %d and %d", judged, n, c.judged, c.success)
			}
			storetest.Invariants(t, s)
		})
	}
}

// A message whose letter cannot be read is judged, also if it succeeded by its progress. Its
// neighbour is completed.
func TestProgressOfALetterThatCannotBeRead(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 2)
	d := claimed(t, s, 1, time.Hour)[0]
	must(t, errors.Join(s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury,
		Burial: &nixie.Burial{Cause: nixie.CauseOperator, Status: nixie.StatusOpen, Redrivable: true}}})...))
	l, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	must(t, errors.Join(s.Resolve(t.Context(), []store.Resolution{{Letter: l[0].ID, Event: store.OnRedrive, Actor: "ann"}})...))
	must(t, s.LogProgress(lease.Succeeded, claimed(t, s, 2, time.Hour)...))
	s.Crash()
	damage(t, path, "update letter set facet = 999999")

	s = open(t, path, sqlite.Options{Reserve: -1})
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 2})
	must(t, err)
	if len(ds) != 1 || ds[0].ID != d.ID || !ds[0].Abandoned {
		t.Errorf("claimed %+v, want the redriven one, to be judged", ds)
	}
	if n := succeeded(t, s); n != 1 {
		t.Errorf("%d succeeded, want its neighbour", n)
	}
}

// A slot is used again once its lease was answered, and not before the sweep that has to
// read it could.
func TestProgressUseTheirSlotsAgain(t *testing.T) {
	clock := storetest.NewClock()
	path := storePath(t)
	s := open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1})
	fill(t, s, "q", 2003)
	size := func() int64 {
		info, err := os.Stat(progressFile(t, path))
		must(t, err)
		return info.Size()
	}
	settle := func(ds []*nixie.Delivery, want nixie.Code) {
		t.Helper()
		sts := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		for _, err := range s.Settle(t.Context(), sts) {
			if nixie.CodeOf(err) != want {
				t.Fatalf("settle: %v, want code %q", err, want)
			}
		}
	}
	for range 20 {
		ds := claimed(t, s, 100, time.Minute)
		must(t, s.LogProgress(lease.Waiting, ds...))
		must(t, s.LogProgress(lease.Begun, ds...))
		must(t, s.LogProgress(lease.Succeeded, ds...))
		settle(ds, "")
	}
	full := size()
	if full > 32*101 {
		t.Errorf("the file of 100 deliveries at a time has %d bytes", full)
	}

	done := claimed(t, s, 1, time.Minute)
	long := claimed(t, s, 1, time.Hour)
	must(t, s.LogProgress(lease.Succeeded, done...))
	clock.Advance(2 * time.Minute)
	settle(done, nixie.CodeLeaseLost)
	must(t, s.LogProgress(lease.Waiting, long...)) // not in a slot that no sweep has read
	before := succeeded(t, s)
	claimed(t, s, 1, time.Minute) // sweeps
	if n := succeeded(t, s) - before; n != 1 {
		t.Errorf("%d more succeeded, want the one that was recorded in time", n)
	}
	if n := size(); n != full {
		t.Errorf("the file grew from %d to %d bytes", full, n)
	}
}

// A lease that is lost at its renewal gives its slot up, too.
func TestProgressOfLostLeases(t *testing.T) {
	clock := storetest.NewClock()
	path := storePath(t)
	s := open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1})
	fill(t, s, "q", 1)
	for range 50 {
		ds := claimed(t, s, 1, time.Minute)
		must(t, s.LogProgress(lease.Waiting, ds...))
		clock.Advance(2 * time.Minute)
		if err := s.Extend(t.Context(), ds, time.Minute)[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Fatalf("extend: %v", err)
		}
	}
	info, err := os.Stat(progressFile(t, path))
	must(t, err)
	if info.Size() > 4*32 {
		t.Errorf("the file of one delivery at a time has %d bytes", info.Size())
	}
}

// A claim that waited for work is noted like any other.
func TestProgressOfAnAwaitedClaim(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	got := await(t.Context(), s)
	fill(t, s, "q", 1)
	if a := <-got; a.err != nil || len(a.ds) != 1 {
		t.Fatalf("%d deliveries, error %v", len(a.ds), a.err)
	}
	s.Crash()
	s = open(t, path, sqlite.Options{Reserve: -1})
	if d := claimed(t, s, 1, time.Minute)[0]; d.Abandoned || d.Attempts != 1 {
		t.Errorf("abandoned %v, %d attempts", d.Abandoned, d.Attempts)
	}
}

// Who has claimed nothing, or too much, is told that nothing is noted.
func TestProgressAreRefused(t *testing.T) {
	path := storePath(t)
	s, other := open(t, path, sqlite.Options{Reserve: -1}), open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 1)
	d := claimed(t, s, 1, time.Minute)[0]
	if other.LogProgress(lease.Waiting, d) == nil {
		t.Error("a process without a lock logged progress")
	}
	many := make([]*nixie.Delivery, 2*nixie.MaxBatch)
	for i := range many {
		many[i] = &nixie.Delivery{Lease: nixie.Lease{Number: 1, Handle: nixie.LeaseHandle{Pos: int64(1<<50 + i)}}}
	}
	must(t, s.LogProgress(lease.Waiting, many...))
	if s.LogProgress(lease.Waiting, d) == nil {
		t.Error("more slots than the limit were used")
	}
	must(t, s.LogProgress(lease.Begun, d, many[0])) // what is noted goes on
	must(t, s.LogProgress(lease.Succeeded, many[0]))
	if s.LogProgress(lease.Waiting, lease.Renewal(d, nil), &nixie.Delivery{}) == nil {
		t.Error("a delivery of another store was noted")
	}
}

// Sixty processes' worth of records next to each other do not mix.
func TestProgressAtOnce(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 600)
	ds := claimed(t, s, 600, time.Hour)
	must(t, s.LogProgress(lease.Waiting, ds...))
	errs := make(chan error, 60)
	for i := range 60 {
		go func() {
			var err error
			for _, d := range ds[10*i : 10*i+5] {
				if err == nil {
					err = s.LogProgress(lease.Begun, d)
				}
				if err == nil {
					err = s.LogProgress(lease.Succeeded, d)
				}
			}
			errs <- err
		}()
	}
	for range 60 {
		must(t, <-errs)
	}
	s.Crash()
	s = open(t, path, sqlite.Options{Reserve: -1})
	again, err := s.Claim(context.Background(), "q", nixie.Want{Max: 1000})
	must(t, err)
	if n := succeeded(t, s); n != 300 || len(again) != 300 {
		t.Errorf("%d succeeded and %d wait, want 300 each", n, len(again))
	}
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte{})
	f.Add(sqlite.ProgressFile(1, 2, lease.Succeeded))
	f.Add(append(sqlite.ProgressFile(1, 2, lease.Waiting), 1, 2, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		found := sqlite.ReadProgress(bytes.NewReader(data))
		if most := len(data)/32 - 1; len(found) > max(most, 0) {
			t.Errorf("%d slots in %d bytes", len(found), len(data))
		}
		for lease, progress := range found {
			if again := sqlite.ReadProgress(bytes.NewReader(sqlite.ProgressFile(lease[0], lease[1], progress))); again[lease] != progress {
				t.Errorf("%v in progress %d is read as %v", lease, progress, again)
			}
		}
	})
}
