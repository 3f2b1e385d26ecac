package nixie_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// An observer is told every decision, in slices, for example to count, log or trace them.
func ExampleObserver() {
	observer := &nixie.Observer{
		Settled: func(queue string, settled []nixie.Settlement, errs []error) {
			for i, s := range settled {
				fmt.Println(queue, s.Delivery.Key, s.Verb, errs[i])
			}
		},
	}
	st := memory.New(memory.Options{})
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing"), Observer: observer})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: "invoice-1"}); err != nil {
		fmt.Println(err)
		return
	}
	deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := desk.Done(ctx, deliveries[0], errors.New("no answer"), time.Now()); err != nil {
		fmt.Println(err)
	}
	// Output: billing invoice-1 retry <nil>
}
