package worker_test

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

type Invoice struct {
	Number   int
	Customer string
}

// A program names its types once, and uses them to enqueue and to work.
func Example() {
	sendInvoice := nixie.NewType[Invoice]("send-invoice", nixie.Queue("billing"))
	st := memory.New(memory.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	for _, inv := range []Invoice{{4711, "Ada"}, {4712, ""}, {4713, "Grace"}} {
		if _, err := sendInvoice.Enqueue(ctx, st, inv); err != nil {
			fmt.Println(err)
			return
		}
	}

	seen := 0
	w, err := worker.New(worker.Config{
		Source:      store.NewSource(st, "billing"),
		Concurrency: 1,
		Handler: nixie.Routes(sendInvoice.Handle(func(_ context.Context, job *nixie.Job[Invoice]) error {
			if seen++; seen == 3 {
				defer stop() // a program stops at a signal
			}
			if job.Body.Customer == "" {
				return nixie.Permanent(fmt.Errorf("invoice %d has no customer", job.Body.Number))
			}
			fmt.Println("sent", job.Body.Number, "to", job.Body.Customer)
			return nil
		})),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Run(ctx); err != nil { // returns when nothing is left in hand
		fmt.Println(err)
	}

	letters, _, err := st.Letters(context.Background(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range letters {
		fmt.Println("dead:", l.Cause, l.History[0].Text)
	}
	// Output:
	// sent 4711 to Ada
	// sent 4713 to Grace
	// dead: permanent invoice 4712 has no customer
}

// A Desk decides and settles for a program that has its own loop.
func ExampleDesk() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "letters", Key: "a"}, nixie.Message{Queue: "letters", Key: "b"}); err != nil {
		fmt.Println(err)
		return
	}
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "letters")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ds, err := desk.Receive(ctx, nixie.Want{Max: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range ds {
		begun := time.Now()
		var outcome error
		if d.Key == "b" {
			outcome = nixie.Verdict(nixie.Hold, errors.New("address cannot be read"))
		}
		st, err := desk.Done(ctx, d, outcome, begun)
		fmt.Println(d.Key, st.Verb, err)
	}
	// Output:
	// a complete <nil>
	// b hold <nil>
}
