package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
)

type Order struct{ Item string }

type Confirmation struct{ Text string }

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // programs that talk to each other share a file or a server
	orders, err := loop.In[Order, Confirmation](st, "orders", loop.Config{})
	answers, err2 := loop.In[Confirmation, struct{}](st, "answers", loop.Config{})
	if err := errors.Join(err, err2); err != nil {
		log.Fatal(err)
	}

	// One program sends an order and says where it waits for answers.
	if _, err := orders.Send(ctx, Order{"tea"}, loop.ReplyTo(answers.Name())); err != nil {
		log.Fatal(err)
	}

	// Another one receives the order, answers it and acknowledges it.
	received, err := orders.Receive(ctx, loop.Max(10), loop.Wait(20*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range received {
		_, err := m.Reply(ctx, Confirmation{"one " + m.Body.Item})
		if err := errors.Join(err, m.Acknowledge(ctx)); err != nil {
			log.Fatal(err)
		}
	}

	replies, err := answers.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range replies {
		fmt.Println(m.Body.Text)
	}
	// Output: one tea
}
