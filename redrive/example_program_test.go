package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
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
		_, failed := desk.Done(ctx, d, nixie.WithReason(nixie.Permanent(errors.New("no answer")), nixie.ReasonDependency), time.Now())
		err = errors.Join(err, failed)
	}
	return err
}

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // or the store in which your letters are
	_, err := st.Enqueue(ctx, nixie.Message{Queue: "billing"})
	if err := errors.Join(err, dies(ctx, st, "billing")); err != nil {
		log.Fatal(err)
	}
	engine, err := redrive.New(redrive.Config{Store: st, Rate: 50})
	if err != nil {
		log.Fatal(err)
	}
	work := store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "it answers again"}
	operation, err := engine.Plan(ctx, work, nixie.Filter{}, 0)
	if err != nil {
		log.Fatal(err)
	}
	result, err := engine.Run(ctx, operation.ID) // may be stopped, and called again
	fmt.Println(result.Done, "done,", result.Pending, "to go", err)
	// Output: 1 done, 0 to go <nil>
}
