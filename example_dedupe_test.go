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

// The queue sets how long a message holds its key: while it is queued or leased, until its letter
// is resolved, or for good.
func ExampleDedupeScope() {
	for _, scope := range []nixie.DedupeScope{nixie.DedupeActive, nixie.DedupeUnresolved, nixie.DedupeEver} {
		free, err := freed(scope)
		fmt.Printf("%s: free %s, %v\n", scope, free, err)
	}
	// Output:
	// active: free once it is dead, <nil>
	// unresolved: free once its letter is discarded, <nil>
	// ever: free never, <nil>
}

// freed returns when a key is free again in a queue with that scope.
func freed(scope nixie.DedupeScope) (string, error) {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	settings := nixie.QueueSettings{DedupeScope: scope}
	if err := store.Configure(ctx, st, "billing", settings, "ann", "one invoice, one message"); err != nil {
		return "", err
	}
	invoice := nixie.Message{Queue: "billing", DedupeKey: "invoice-4711"}
	if _, err := st.Enqueue(ctx, invoice); err != nil {
		return "", err
	}
	if err := bury(ctx, st); err != nil {
		return "", err
	}
	if receipts, err := st.Enqueue(ctx, invoice); err != nil || !receipts[0].Duplicate {
		return "once it is dead", err
	}
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	if err != nil {
		return "", err
	}
	discard := store.Resolution{Letter: letters[0].ID, Event: store.OnDiscard, Actor: "ann", Reason: "no such customer"}
	if err := st.Resolve(ctx, []store.Resolution{discard})[0]; err != nil {
		return "", err
	}
	if receipts, err := st.Enqueue(ctx, invoice); err != nil || !receipts[0].Duplicate {
		return "once its letter is discarded", err
	}
	return "never", nil
}

// bury claims the next message of the queue and buries it.
func bury(ctx context.Context, st store.Store) error {
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing")})
	if err != nil {
		return err
	}
	deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
	if err != nil {
		return err
	}
	_, err = desk.Done(ctx, deliveries[0], nixie.Permanent(errors.New("no such customer")), time.Now())
	return err
}

// The producer chooses the answer to a key that is taken.
func ExampleOnConflict() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	price := nixie.NewType[int]("price", nixie.Queue("prices"), nixie.DedupeKey("apples"))
	for _, step := range []struct {
		name string
		how  nixie.Conflict
	}{{"return", nixie.ReturnExisting}, {"fail", nixie.FailOnConflict}, {"replace", nixie.ReplaceExisting}} {
		if _, err := price.Enqueue(ctx, st, 1); err != nil {
			fmt.Println(err)
			return
		}
		receipt, err := price.Enqueue(ctx, st, 2, nixie.OnConflict(step.how))
		fmt.Printf("%s: duplicate %t, code %q\n", step.name, receipt.Duplicate, nixie.CodeOf(err))
	}
	got, err := st.Claim(ctx, "prices", nixie.Want{Max: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("handed out:", len(got), string(got[0].Body))
	// Output:
	// return: duplicate true, code ""
	// fail: duplicate false, code "conflict"
	// replace: duplicate true, code ""
	// handed out: 1 2
}
