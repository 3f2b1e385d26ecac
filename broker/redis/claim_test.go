package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
)

// A claim of large records ends after 8 MiB, at the end of a hundred: the answer to a receiver that
// asks for many stays small.
func TestClaimIsBoundInBytes(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	large := strings.Repeat("x", 100<<10)
	f.produce(t, 110, func(int) string { return large })
	for _, n := range []int{100, 10} {
		got, err := d.Receive(t.Context(), broker.Want{Max: 1000, Lease: time.Minute})
		if err != nil || len(got) != n {
			t.Fatalf("%d records, want %d: %v", len(got), n, err)
		}
	}
}

// Who asks whether it still has a record, with a lease of 0, keeps it for as long as before.
func TestAskingKeepsTheLease(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, 1, func(int) string { return fine })
	held := pointers(take(t, d, 1))
	ends := func() float64 { return f.client.ZScore(t.Context(), f.mailbox().keys[1], held[0].MessageID).Val() }
	before := ends()
	if err := d.Extend(t.Context(), held, 0)[0]; err != nil || before == 0 || ends() != before {
		t.Errorf("the lease ended at %f, and now at %f: %v", before, ends(), err)
	}
	other := f.open(t, Config{})
	if got, err := other.Receive(t.Context(), want); err != nil || len(got) != 0 {
		t.Errorf("another receiver gets %d records: %v", len(got), err)
	}
}
