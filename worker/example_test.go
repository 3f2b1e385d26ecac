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
func Example_deaths() {
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

// One call settles a batch, enqueues what follows it, and claims the next one.
func ExampleDesk_Exchange() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	for _, key := range []string{"a", "b", "c"} {
		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "orders", Key: key}); err != nil {
			fmt.Println(err)
			return
		}
	}
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	var outcomes []worker.Outcome // of the batch before
	for {
		settled, batch, err := desk.Exchange(ctx, outcomes, nixie.Want{Max: 2})
		for _, s := range settled {
			fmt.Println(s.Delivery.Key, s.Verb, s.Err)
		}
		if err != nil || len(batch) == 0 {
			return
		}
		outcomes = nil
		for _, d := range batch {
			outcome := worker.Outcome{Delivery: d, StartedAt: time.Now()}
			if d.Key == "b" {
				outcome.Err = nixie.Permanent(errors.New("no such customer"))
			} else {
				outcome.Err = d.Then(nixie.Message{Queue: "mails"})
			}
			outcomes = append(outcomes, outcome)
		}
	}
	// Output:
	// a complete <nil>
	// b bury <nil>
	// c complete <nil>
}
