package office_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// dies lets a message of the queue die, as a worker does.
func dies(ctx context.Context, st store.Store, queue string) error {
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, queue)})
	if err != nil {
		return err
	}
	deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
	for _, d := range deliveries {
		_, failed := desk.Done(ctx, d, nixie.Permanent(errors.New("there is no customer 7")), time.Now())
		err = errors.Join(err, failed)
	}
	return err
}

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // or the store in which your letters are
	_, err := st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: "invoice-7"})
	if err := errors.Join(err, dies(ctx, st, "billing")); err != nil {
		log.Fatal(err)
	}
	clerk, err := office.New(office.Config{Store: st, Actor: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	analysis, err := clerk.Analyze(ctx, nixie.Filter{}, store.ScanRecent)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range analysis.Groups {
		fmt.Println(g.Count, g.Signature)
	}
	redrive := &office.OperationRequest{Event: store.OnRedrive, Reason: "the customer is there now", Force: true}
	operation, err := clerk.Begin(ctx, redrive) // what dies from now on is not in it
	if err != nil {
		log.Fatal(err)
	}
	done, err := clerk.Run(ctx, operation.Operation, redrive) // may be stopped, and called again
	fmt.Println(done.Done(), "redriven", err)
	// Output:
	// 1 handler: there is no customer <n>
	// 1 redriven <nil>
}
