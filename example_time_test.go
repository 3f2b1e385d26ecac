package nixie_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// A delayed message is not delivered earlier. The store's clock decides; here the example sets it.
func ExampleDelay() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	st := memory.New(memory.Options{Clock: func() time.Time { return now }})
	ctx := context.Background()
	remind := nixie.NewType[string]("remind", nixie.Queue("billing"))
	if _, err := remind.Enqueue(ctx, st, "Ada", nixie.Delay(time.Hour)); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		got, err := st.Claim(ctx, "billing", nixie.Want{Max: 10})
		fmt.Println(len(got), err)
		now = now.Add(time.Hour)
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
}

// An expired message does not reach a handler. It becomes a letter, so that it is not lost
// silently.
func ExampleMessage_expiry() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st := memory.New(memory.Options{Clock: clock})
	ctx := context.Background()
	offer := nixie.Message{Queue: "offers", Key: "offer-1", ExpiresAt: now.Add(time.Hour)}
	if _, err := st.Enqueue(ctx, offer); err != nil {
		fmt.Println(err)
		return
	}
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "offers"), Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	now = now.Add(2 * time.Hour)
	run, err := desk.Receive(ctx, nixie.Want{Max: 10})
	fmt.Println("to run:", len(run), err)
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(letters[0].Message.Key, letters[0].Cause)
	// Output:
	// to run: 0 <nil>
	// offer-1 expired
}

// A higher priority goes first.
func ExamplePriority() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	mail := nixie.NewType[string]("mail", nixie.Queue("mail"))
	for who, priority := range map[string]int{"all readers": -4, "Ada": 0, "the fire brigade": 4} {
		if _, err := mail.Enqueue(ctx, st, who, nixie.Priority(priority)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 3 {
		got, err := st.Claim(ctx, "mail", nixie.Want{Max: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(got[0].Body))
	}
	// Output:
	// "the fire brigade"
	// "Ada"
	// "all readers"
}
