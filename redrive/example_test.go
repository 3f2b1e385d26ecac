package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// Plan freezes the selection. Run may be stopped anywhere, here after the first group, and goes on
// where it was.
func ExampleEngine() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "billing"}); err != nil {
			fmt.Println(err)
			return
		}
		deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		outcome := nixie.WithReason(nixie.Permanent(errors.New("no answer")), nixie.ReasonDependency)
		if _, err := desk.Done(ctx, deliveries[0], outcome, time.Now()); err != nil {
			fmt.Println(err)
			return
		}
	}

	stopped, stop := context.WithCancel(ctx)
	defer stop()
	engine, err := redrive.New(redrive.Config{
		Store: st, Batch: 2,
		Progress: func(store.Operation) { stop() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	operation, err := engine.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "it answers again"}, nixie.Filter{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := engine.Run(stopped, operation.ID)
	fmt.Println(result.Done, "done,", result.Pending, "to go, stopped:", errors.Is(err, context.Canceled))
	result, err = engine.Run(ctx, operation.ID)
	fmt.Println(result.Done, "done,", result.Pending, "to go,", err)
	// Output:
	// 2 done, 3 to go, stopped: true
	// 5 done, 0 to go, <nil>
}
