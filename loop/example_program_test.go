package loop_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
)

type Order struct{ Item string }

type Confirmation struct{ Text string }

// A program sends an order and asks for answers in a mailbox of its own. Another program receives
// the order, answers it and acknowledges it.
func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	orders, _ := loop.In[Order, Confirmation](st, "orders", loop.Config{})
	answers, _ := loop.In[Confirmation, struct{}](st, "answers", loop.Config{})

	if _, err := orders.Send(ctx, Order{"tea"}, loop.ReplyTo(answers.Name())); err != nil {
		fmt.Println(err)
	}

	received, _ := orders.Receive(ctx, loop.Max(10), loop.Wait(20*time.Second))
	for _, m := range received {
		if _, err := m.Reply(ctx, Confirmation{"one " + m.Body.Item}); err != nil {
			fmt.Println(err)
		}
		if err := m.Acknowledge(ctx); err != nil {
			fmt.Println(err)
		}
	}

	replies, _ := answers.Receive(ctx)
	fmt.Println(replies[0].Body.Text)
	// Output: one tea
}
