package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "mails", Key: "to Ada"}); err != nil {
		log.Fatal(err)
	}
	source := store.NewSource(st, "mails") // as a rule for a worker, which does all that follows
	deliveries, err := source.Receive(ctx, nixie.Want{Max: 10})
	if err != nil {
		log.Fatal(err)
	}
	var settlements []nixie.Settlement
	for _, d := range deliveries {
		fmt.Println("sending", d.Key)
		settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
	}
	if err := errors.Join(source.Settle(ctx, settlements)...); err != nil {
		log.Fatal(err) // such as a lease that ended
	}
	messages, _, err := st.Messages(ctx, nixie.Filter{}, store.Page{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(messages[0].Key, messages[0].State)
	// Output:
	// sending to Ada
	// to Ada succeeded
}
