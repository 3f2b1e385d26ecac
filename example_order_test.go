package nixie_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// The queue sets the order of its streams. In a strict queue a message that waits for a retry holds
// up its stream; in a relaxed queue the others pass it. Other streams go on in both.
func ExampleOrder() {
	for _, order := range []nixie.Order{nixie.OrderStrict, nixie.OrderRelaxed} {
		went, err := overtaken(order)
		fmt.Println(order, went, err)
	}
	// Output:
	// strict [Grace 1] <nil>
	// relaxed [Ada 2 Grace 1] <nil>
}

// overtaken lets the first message of a stream fail, and returns the messages delivered meanwhile.
func overtaken(order nixie.Order) ([]string, error) {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	if err := store.Configure(ctx, st, "accounts", nixie.QueueSettings{Order: order}, "ann", "bookings have an order"); err != nil {
		return nil, err
	}
	booking := nixie.NewType[int]("booking", nixie.Queue("accounts"))
	for _, b := range []struct{ customer, key string }{{"Ada", "Ada 1"}, {"Ada", "Ada 2"}, {"Grace", "Grace 1"}} {
		if _, err := booking.Enqueue(ctx, st, 100, nixie.Stream(b.customer), nixie.Key(b.key)); err != nil {
			return nil, err
		}
	}
	first, err := st.Claim(ctx, "accounts", nixie.Want{Max: 1})
	if err != nil {
		return nil, err
	}
	if err := st.Settle(ctx, []nixie.Settlement{{Delivery: first[0], Verb: nixie.Retry, Delay: time.Hour}})[0]; err != nil {
		return nil, err
	}
	var keys []string
	meanwhile, err := st.Claim(ctx, "accounts", nixie.Want{Max: 10})
	for _, d := range meanwhile {
		keys = append(keys, d.Key)
	}
	return keys, err
}
