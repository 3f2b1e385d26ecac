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

type Invoice struct {
	Number   int
	Customer string
}

// The producer and the handler of a message use one value for its type.
func ExampleType_Enqueue() {
	invoice := nixie.NewType[Invoice]("send-invoice", nixie.Queue("billing"))
	st := memory.New(memory.Options{})
	ctx := context.Background()
	for range 2 {
		receipt, err := invoice.Enqueue(ctx, st, Invoice{4711, "Ada"},
			nixie.Key("invoice-4711"),       // to be found by later
			nixie.DedupeKey("invoice-4711"), // once while it is on its way
			nixie.WithHeader(nixie.HeaderRequestID, "r-1"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("duplicate:", receipt.Duplicate)
	}
	// Output:
	// duplicate: false
	// duplicate: true
}

// A queue may carry several types. A body that cannot be decoded does not reach its function, and
// a message without a route is not dropped: both become dead letters.
func ExampleRoutes() {
	invoice := nixie.NewType[Invoice]("send-invoice", nixie.Queue("billing"))
	reminder := nixie.NewType[string]("remind", nixie.Queue("billing"))
	handler := nixie.Routes(
		invoice.Handle(func(_ context.Context, job *nixie.Job[Invoice]) error {
			fmt.Println("invoice", job.Body.Number, "to", job.Body.Customer)
			return nil
		}),
		reminder.Handle(func(_ context.Context, job *nixie.Job[string]) error {
			fmt.Println("remind", job.Body)
			return nil
		}),
	)

	st := memory.New(memory.Options{})
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_, err = st.Enqueue(ctx,
		nixie.Message{Queue: "billing", Type: "send-invoice", Body: []byte(`{"Number": 4711, "Customer": "Ada"}`)},
		nixie.Message{Queue: "billing", Type: "remind", Body: []byte(`"Grace"`)},
		nixie.Message{Queue: "billing", Type: "send-invoice", Body: []byte(`{"Number": 47`)},
		nixie.Message{Queue: "billing", Type: "cancel-invoice"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	deliveries, err := desk.Receive(ctx, nixie.Want{Max: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range deliveries {
		settled, err := desk.Done(ctx, d, handler.Handle(ctx, d), time.Now())
		if err != nil {
			fmt.Println(err)
			return
		}
		if settled.Failure != nil {
			fmt.Printf("%s: %s, %s\n", settled.Verb, settled.Failure.Reason, settled.Failure.Text)
		}
		if settled.Waiver == nixie.WaiveUnknown {
			fmt.Println("left to a worker that knows the type", d.Type)
		}
	}
	// Output:
	// invoice 4711 to Ada
	// remind Grace
	// bury: serialization, decode send-invoice: unexpected end of JSON input
	// left to a worker that knows the type cancel-invoice
}

// A finished step does not run again when a later one fails.
func ExampleDelivery_Step() {
	d := &nixie.Delivery{Message: nixie.Message{Key: "invoice-4711"}}
	shipper := errors.New("the post is closed")
	handle := func() error {
		if err := d.Step("charge", func() error { fmt.Println("charged"); return nil }); err != nil {
			return err
		}
		return d.Step("ship", func() error { return shipper })
	}
	fmt.Println(handle())
	shipper = nil // the next attempt, with the steps that the store has kept
	fmt.Println(handle(), d.Steps)
	// Output:
	// charged
	// ship: the post is closed
	// <nil> [charge ship]
}
