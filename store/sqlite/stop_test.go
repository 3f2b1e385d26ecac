//go:build unix

package sqlite_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// heldBy starts a process that holds a range, a message with a row of its own,
// and more, for the given time.
func heldBy(t *testing.T, lease time.Duration) (*sqlite.Store, *child.Process) {
	t.Helper()
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	for i := range 9 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2})
		must(t, err)
	}
	holder := startChild(t, "hold", path, lease.Milliseconds())
	if words := holder.Line(); words[0] != "held" || words[1] != "9" {
		t.Fatal(words)
	}
	return s, holder
}

// TestR12_StoppedPastItsLease stops a holder for longer than its lease. Others
// get the messages as abandoned, and all that the first does after it goes on is
// refused and changes nothing.
func TestR12_StoppedPastItsLease(t *testing.T) {
	s, holder := heldBy(t, 400*time.Millisecond)
	holder.Signal(syscall.SIGSTOP)
	source := store.NewSource(s, "q")
	mine := map[string]*nixie.Delivery{}
	for len(mine) < 9 {
		ds, err := source.Receive(t.Context(), nixie.Want{Max: 100, Wait: patience, Lease: time.Hour})
		must(t, err)
		for _, d := range ds {
			if !d.Abandoned || d.Crashes != 1 || d.Lease.Number != 2 || d.Attempts != 0 {
				t.Fatalf("%+v", d)
			}
			mine[d.Key] = d
		}
	}
	holder.Signal(syscall.SIGCONT)
	holder.GoOn()
	for range 9 {
		words := holder.Line()
		if words[1] != string(nixie.CodeLeaseLost) || words[2] != string(nixie.CodeLeaseLost) {
			t.Errorf("late calls were answered %q", words)
		}
	}
	holder.Wait()
	records, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	must(t, err)
	for _, r := range records {
		if r.State != nixie.Leased || r.Deliveries != 2 || len(r.History) != 0 || len(r.Steps) != 0 {
			t.Errorf("a late call changed message %s: %+v", r.Key, r)
		}
	}
	for _, d := range mine {
		must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
	}
	storetest.Invariants(t, s)
}

// TestStoppedWithinItsLease keeps the lease of a process that only stands still.
func TestStoppedWithinItsLease(t *testing.T) {
	s, holder := heldBy(t, time.Hour)
	holder.Signal(syscall.SIGSTOP)
	for range 20 {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 100})
		must(t, err)
		if len(ds) > 0 {
			t.Fatalf("%d messages were taken from a living owner", len(ds))
		}
	}
	holder.Signal(syscall.SIGCONT)
	holder.GoOn()
	for range 9 {
		if words := holder.Line(); words[1] != "ok" || words[2] != "ok" {
			t.Errorf("within the lease: %q", words)
		}
	}
	holder.Wait()
	storetest.Invariants(t, s)
}

// TestB020_KilledLosesAtOnce hands the messages of a killed process out well before
// its lease ends: the kernel gave its lock back.
func TestB020_KilledLosesAtOnce(t *testing.T) {
	s, holder := heldBy(t, time.Hour)
	holder.Kill()
	start := time.Now()
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 100})
	must(t, err)
	t.Logf("claimed %s after the holder of a lease of an hour was killed", time.Since(start))
	if len(ds) != 9 {
		t.Fatalf("%d deliveries", len(ds))
	}
	for _, d := range ds {
		if !d.Abandoned || d.Crashes != 1 {
			t.Errorf("%s: abandoned %v, %d crashes", d.Key, d.Abandoned, d.Crashes)
		}
	}
}
