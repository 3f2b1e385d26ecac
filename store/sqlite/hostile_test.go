package sqlite_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestClockSetBack sets the machine's clock a year ahead and back, with and
// without a restart: delays and leases still end, a ninth later at most.
func TestClockSetBack(t *testing.T) {
	clock := storetest.NewClock()
	path := storePath(t)
	s := open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1})
	const year = 365 * 24 * time.Hour
	clock.Advance(year)
	fill(t, s, "q", 1)
	clock.Advance(-year)
	for _, restart := range []bool{false, true} {
		if restart {
			must(t, s.Close())
			s = open(t, path, sqlite.Options{Clock: clock.Now, Reserve: -1})
		}
		queue := fmt.Sprint("restarted-", restart)
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: queue, Delay: time.Minute})
		must(t, err)
		for _, abandoned := range []bool{false, true} {
			if ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1, Lease: time.Minute}); err != nil || len(ds) != 0 {
				t.Fatalf("too early: %v %v", ds, err)
			}
			clock.Advance(time.Minute + time.Minute/9 + time.Second)
			ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1, Lease: time.Minute})
			must(t, err)
			if len(ds) != 1 || ds[0].Abandoned != abandoned {
				t.Fatalf("restarted %v: %v is not due after its time", restart, ds)
			}
		}
	}
}

// TestLocksRemoved removes the folder of locks under a living process. It is
// taken for dead, and goes on as a new owner that others see again.
func TestLocksRemoved(t *testing.T) {
	path := storePath(t)
	a, b := open(t, path, sqlite.Options{Reserve: -1, Owner: "a"}), open(t, path, sqlite.Options{Reserve: -1, Owner: "b"})
	fill(t, a, "q", 10)
	first, err := a.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	must(t, os.RemoveAll(path+"-owners"))
	again, err := b.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	if len(again) != 1 || again[0].AbandonedBy != "a" {
		t.Fatalf("%+v", again)
	}
	if err := a.Settle(t.Context(),
		[]nixie.Settlement{{Delivery: first[0], Verb: nixie.Complete}})[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("settling what was taken away: %v", err)
	}
	must(t, b.Settle(t.Context(), []nixie.Settlement{{Delivery: again[0], Verb: nixie.Complete}})[0])
	more, err := a.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	if len(more) != 1 {
		t.Fatal("the first process cannot go on")
	}
	ds, err := b.Claim(t.Context(), "q", nixie.Want{Max: 100})
	must(t, err)
	for _, d := range ds {
		if d.ID == more[0].ID {
			t.Error("the new owner is taken for dead as well")
		}
	}
	storetest.Invariants(t, a)
}

// TestR27_DamagedMessageIsHandedOut hands out a message that cannot be read whole,
// marked, and all others as if nothing were.
func TestR27_DamagedMessageIsHandedOut(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	for i := range 8 {
		_, err := s.Enqueue(t.Context(),
			nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2, Body: []byte("body"),
				Headers: []nixie.Header{{Name: "a", Value: "b"}}})
		must(t, err)
	}
	damage(t, path, "update message set headers = '{' where key = '0'")
	damage(t, path, "update message set origin = '[' where key = '1'")
	damage(t, path, "update message set body = x'00' where key = '2'")
	damage(t, path, "update pending set steps = '!' where pos = (select pos from message where key = '3')")
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 100})
	must(t, err)
	if len(ds) != 8 {
		t.Fatalf("%d of 8 messages were handed out", len(ds))
	}
	for _, d := range ds {
		if damaged := d.Key < "4"; damaged != (len(d.Damage) == 1) {
			t.Errorf("message %s: %q", d.Key, d.Damage)
		}
		st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		if len(d.Damage) > 0 {
			st = nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: &nixie.Failure{Text: d.Damage[0]},
				Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}}
		}
		must(t, s.Settle(t.Context(), []nixie.Settlement{st})[0])
	}
}

// TestClaimedBytesAreBounded hands out no more bodies at once than one call may
// bring in.
func TestClaimedBytesAreBounded(t *testing.T) {
	s := open(t, storePath(t), sqlite.Options{Reserve: -1})
	body := make([]byte, nixie.MaxBatchBytes/4)
	for i := range 6 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Body: body, Priority: i % 2})
		must(t, err)
	}
	total := 0
	for range 2 {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 100})
		must(t, err)
		if len(ds) == 0 || len(ds) > 4 {
			t.Fatalf("%d messages of a quarter of the limit at once", len(ds))
		}
		total += len(ds)
	}
	if total != 6 {
		t.Errorf("%d of 6 messages", total)
	}
}
