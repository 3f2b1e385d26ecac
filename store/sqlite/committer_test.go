package sqlite

import (
	"context"
	"testing"

	"github.com/nixie-go/nixie"
)

// TestNobodyIsToldOfAnothersCommit answers for a transaction that ran without the
// part of a caller who leaves: that is no success of the caller.
func TestNobodyIsToldOfAnothersCommit(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, undone := range []int{0, 1} {
		ran := 0
		w := &write{do: func(*tx) error { ran++; return nil }, done: make(chan error, 1)}
		for range undone { // in transactions that failed because of others
			if err := w.run(nil); err != nil {
				t.Fatal(err)
			}
		}
		w.leave(false)
		if err := w.run(nil); err != nil {
			t.Fatal(err)
		}
		w.done <- nil
		if err := (&Store{}).leaveEarly(ctx, w, false); nixie.CodeOf(err) != nixie.CodeUnavailable || ran != undone {
			t.Errorf("after %d tries that were undone and a commit without the part: %v", undone, err)
		}
	}
}

// TestLeavingWaitsForTheRun lets a caller go while its part runs: it must not
// get its slices back before, and its part must not run again.
func TestLeavingWaitsForTheRun(t *testing.T) {
	started, goOn, ran := make(chan bool), make(chan bool), 0
	w := &write{do: func(*tx) error {
		if ran++; ran == 1 {
			started <- true
			<-goOn
		}
		return nil
	}}
	running := make(chan error, 1)
	go func() { running <- w.run(nil) }()
	<-started
	left := make(chan bool)
	go func() { left <- w.leave(false) }()
	select {
	case <-left:
		t.Fatal("the caller left while its part ran")
	case goOn <- true:
	}
	if !<-left || ran != 1 {
		t.Errorf("the caller was not told that its part ran: %d", ran)
	}
	if err := <-running; err != nil {
		t.Fatal(err)
	}
	if err := w.run(nil); err != nil || ran != 1 {
		t.Errorf("the part ran again after its caller had left: %d, %v", ran, err)
	}
	never := &write{do: func(*tx) error { t.Error("ran after its caller had left"); return nil }}
	if never.leave(true) {
		t.Error("a part that never ran may have happened")
	}
	if err := never.run(nil); err != nil {
		t.Fatal(err)
	}
}

// TestProbesAlternate probes every owner in time, a few at once.
func TestProbesAlternate(t *testing.T) {
	for _, n := range []int{0, 1, maxProbes, maxProbes + 1, 100, 1000} {
		var o ownership
		seen := map[int64]int{}
		for range n/maxProbes*2 + 2 {
			others := make([]ownerRow, n)
			for i := range others {
				others[i].n = int64(i)
			}
			probes := o.nextProbes(others)
			if len(probes) > maxProbes {
				t.Fatalf("%d probes at once", len(probes))
			}
			for _, one := range probes {
				seen[one.n]++
			}
		}
		if len(seen) != n {
			t.Errorf("of %d owners %d were probed", n, len(seen))
		}
	}
}

// FuzzCursor reads any text as a cursor of letters and entries.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "1.2", "1", ".", "1.", ".1", "-1.-1", "9223372036854775808.1", "1.2.3", "x'.--"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if _, _, err := splitCursor(cursor); err != nil && len(err.Error()) > 400 {
			t.Errorf("an error as long as its input: %d bytes", len(err.Error()))
		}
		if _, err := cursorNumber(cursor); err != nil && len(err.Error()) > 400 {
			t.Errorf("an error as long as its input: %d bytes", len(err.Error()))
		}
	})
}
