package simulate_test

import (
	"context"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/simulate"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/storetest"
)

// unfenced is a store that forgets to look at the number of a lease when a
// message is completed: whoever says so last is heard.
type unfenced struct {
	store.Store
	current map[nixie.ID]nixie.Lease // of all handles
}

func (u unfenced) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := u.Store.Claim(ctx, queue, want)
	for _, d := range ds {
		u.current[d.ID] = d.Lease
	}
	return ds, err
}

func (u unfenced) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	var any []nixie.Settlement
	for _, st := range settlements {
		if st.Verb == nixie.Complete {
			d := *lease.Renewal(st.Delivery, st.Delivery.Steps)
			d.Lease = u.current[d.ID]
			st.Delivery = &d
		}
		any = append(any, st)
	}
	return u.Store.Settle(ctx, any)
}

// careless are stores in memory without a fence.
var careless = simulate.Simulation{Events: simulation.Events, Harness: storetest.Harness{Open: func(_ testing.TB, clock *storetest.Clock) storetest.Shared {
	first := memory.New(memory.Options{Clock: clock.Now})
	current := map[nixie.ID]nixie.Lease{}
	return storetest.Shared{
		Join:  func(owner string) store.Store { return unfenced{first.Join(owner), current} },
		Crash: func(st store.Store) { st.(unfenced).Store.(*memory.Store).Crash() },
		Close: func() {},
	}
}}}

// TestABrokenStoreIsFound breaks a store on purpose: one of the first seeds has to
// find it, with a list that a person can read.
func TestABrokenStoreIsFound(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := careless.Seed(t, seed)
		if r.Found == nil {
			continue
		}
		shortest := careless.Minimise(t, r)
		t.Logf("from %d events: %s", len(r.Events), shortest)
		if shortest.Found.Rule != simulate.Fenced {
			t.Errorf("the rule is %q, want %q", shortest.Found.Rule, simulate.Fenced)
		}
		if n := len(shortest.Events); n > 12 {
			t.Errorf("%d events are left, want 12 at most", n)
		}
		if again := careless.Again(t, shortest.Setup, shortest.Events); again.Found == nil || *again.Found != *shortest.Found || again.Trace != shortest.Trace {
			t.Errorf("the shortest list ends in %v, want %v", again.Found, shortest.Found)
		}
		return
	}
	t.Error("no seed finds that late workers are heard")
}
