package broker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// A lease that the broker cannot give is refused at the start, with both numbers.
func TestLeaseTooLong(t *testing.T) {
	s := newSource(t, broker.Config{Driver: brokertest.NewTimed().Join(t)})
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, atNew := worker.New(worker.Config{Source: s, Policy: p, Lease: 2 * time.Hour,
		Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return nil })})
	_, atReceive := s.Receive(t.Context(), nixie.Want{Max: 1, Lease: 2 * time.Hour})
	for _, err := range []error{atNew, atReceive} {
		if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), "2h0m0s") || !strings.Contains(err.Error(), " 1h0m0s") {
			t.Error(err)
		}
	}
}

// failing is a driver that cannot extend leases while err is set.
type failing struct {
	broker.Driver
	err error
}

func (f *failing) Extend(ctx context.Context, records []*broker.Record, lease time.Duration) []error {
	errs := f.Driver.Extend(ctx, records, lease)
	if f.err != nil {
		for n := range errs {
			errs[n] = f.err
		}
	}
	return errs
}

// A record that waited in hand runs only under a whole lease. While that cannot be had it stays in
// hand, and costs nothing; if it is lost, it is dropped.
func TestWhatWaitedIsRenewedBeforeItRuns(t *testing.T) {
	box := brokertest.NewTimed()
	box.Produce(t, broker.Publication{Channel: box.Source(), Value: []byte("v")})
	d := &failing{Driver: box.Join(t)}
	s := newSource(t, broker.Config{Driver: d})
	retry := func(ds []*nixie.Delivery) {
		t.Helper()
		if err := s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Retry}})[0]; err != nil {
			t.Fatal(err)
		}
	}
	retry(receive(t, s, 1))
	d.err = nixie.Errorf(nixie.CodeUnavailable, "no answer")
	if got, err := s.Receive(t.Context(), nixie.Want{Max: 1}); len(got) > 0 || nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Fatal(got, err)
	}
	if err := s.Renew(t.Context(), time.Minute); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Error(err)
	}
	d.err = nil
	again := receive(t, s, 1)
	if again[0].Attempts != 2 || again[0].Deliveries != 2 {
		t.Errorf("attempt %d, delivery %d", again[0].Attempts, again[0].Deliveries)
	}
	retry(again)
	d.err = nixie.Errorf(nixie.CodeLeaseLost, "another consumer has it")
	receive(t, s, 0)
	d.err = nil
	receive(t, s, 0)
}
