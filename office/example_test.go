package office_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// badDay is a store in which three invoices have died of two causes.
func badDay(ctx context.Context, clock func() time.Time) (*memory.Store, error) {
	st := memory.New(memory.Options{Clock: clock})
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing"), Clock: clock})
	if err != nil {
		return nil, err
	}
	for key, outcome := range map[string]error{
		"invoice-1": nixie.WithReason(nixie.Permanent(errors.New("host 10.0.0.7 is down")), nixie.ReasonDependency),
		"invoice-2": nixie.WithReason(nixie.Permanent(errors.New("host 10.0.0.9 is down")), nixie.ReasonDependency),
		"invoice-3": nixie.WithReason(nixie.Permanent(errors.New("amount is negative")), nixie.ReasonValidation),
	} {
		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: key}); err != nil {
			return nil, err
		}
		deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
		if err != nil {
			return nil, err
		}
		if _, err := desk.Done(ctx, deliveries[0], outcome, clock()); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// The example groups the letters by cause, previews a redrive, and runs it.
func Example_causes() {
	ctx := context.Background()
	st, err := badDay(ctx, time.Now)
	if err != nil {
		fmt.Println(err)
		return
	}
	clerk, err := office.New(office.Config{Store: st, Actor: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	analysis, err := clerk.Analyze(ctx, nixie.Filter{}, store.ScanRecent)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range analysis.Groups {
		fmt.Printf("%d × %s: %s\n", g.Count, g.Signature, g.Advice)
	}

	work := &office.OperationRequest{Event: store.OnRedrive, Reason: "the hosts are back", Rate: 50}
	plan, err := clerk.Preview(ctx, work)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("would go:", plan.Movable, "would stay:", plan.Skipped, plan.Refused)

	operation, err := clerk.Begin(ctx, work) // what dies from now on is not in it
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := clerk.Run(ctx, operation.Operation, work) // may be stopped, and called again
	fmt.Println("went:", done.Done(), "stayed:", done.Skipped, err)
	// Output:
	// 2 × dependency: host <host> is down: see that what it depends on is up again, then redrive
	// 1 × validation: amount is negative: fix the producer or the handler; the same bytes fail again, so discard or redrive with --force after a fix
	// would go: 2 would stay: 1 [{needs review: look at it, then use force 1}]
	// went: 2 stayed: 1 <nil>
}

// A filter finds letters, and the office returns each with every attempt.
func ExampleOffice_AllLetters() {
	ctx := context.Background()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := badDay(ctx, clock)
	if err != nil {
		fmt.Println(err)
		return
	}
	clerk, err := office.New(office.Config{Store: st, Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := filter.Parse("queue:billing reason:validation", now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for letter, err := range clerk.AllLetters(ctx, f, true) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(letter.Message.Key, letter.Status, letter.Cause)
		for _, failure := range letter.History {
			fmt.Println("  attempt", failure.Attempt, failure.Text)
		}
	}
	// Output:
	// invoice-3 open permanent
	//   attempt 1 amount is negative
}
