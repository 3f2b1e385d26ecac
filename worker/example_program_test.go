package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

func Example() {
	ctx := context.Background() // of a service, one that a signal ends
	st := memory.New(memory.Options{})
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "mails", Key: "to Ada"}, nixie.Message{Queue: "mails"}); err != nil {
		log.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "mails"),
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
			if d.Key == "" {
				return nixie.Permanent(errors.New("the mail has no address"))
			}
			fmt.Println("sent", d.Key, "at attempt", d.Attempts)
			return nil
		}),
		Concurrency: 8,
		Timeout:     time.Minute, // of each attempt
		Until:       worker.Until{Idle: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil { // returns when nothing is in hand
		log.Fatal(err)
	}
	// Output: sent to Ada at attempt 1
}
