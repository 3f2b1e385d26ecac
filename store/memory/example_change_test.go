package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// An operator can change messages that have not ended. Each change has one entry in the audit.
func ExampleStore_Amend() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	st := memory.New(memory.Options{Clock: func() time.Time { return now }})
	ctx := context.Background()
	reminder := nixie.Message{Queue: "billing", Delay: time.Hour}
	receipts, err := st.Enqueue(ctx, reminder, reminder)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, second := []nixie.ID{receipts[0].ID}, []nixie.ID{receipts[1].ID}
	for _, step := range []struct {
		ids    []nixie.ID
		change store.Change
	}{
		{first, store.Change{Verb: store.RetryNow, Actor: "ann", Reason: "the customer is on the phone"}},
		{second, store.Change{Verb: store.Reschedule, At: now.Add(24 * time.Hour), Actor: "ann"}},
		{second, store.Change{Verb: store.Cancel, Actor: "ann", Reason: "it is paid"}},
		{second, store.Change{Verb: store.RetryNow, Actor: "bob"}},
	} {
		errs := st.Amend(ctx, step.ids, step.change)
		fmt.Printf("%s: code %q\n", step.change.Verb, nixie.CodeOf(errs[0]))
	}
	got, err := st.Claim(ctx, "billing", nixie.Want{Max: 10})
	fmt.Println("handed out:", len(got), err)
	// Output:
	// retry-now: code ""
	// reschedule: code ""
	// cancel: code ""
	// retry-now: code "conflict"
	// handed out: 1 <nil>
}

// A strict stream with a dead head waits for an operator. Here the operator lets its followers go
// on.
func ExampleStore_Unblock() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	if err := store.Configure(ctx, st, "accounts", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann",
		"bookings have an order"); err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"booking-1", "booking-2"} {
		if _, err := st.Enqueue(ctx, nixie.Message{Queue: "accounts", Stream: "Ada", Key: key}); err != nil {
			fmt.Println(err)
			return
		}
	}
	head, err := st.Claim(ctx, "accounts", nixie.Want{Max: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	burial := &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}
	if err := st.Settle(ctx, []nixie.Settlement{{Delivery: head[0], Verb: nixie.Bury, Burial: burial}})[0]; err != nil {
		fmt.Println(err)
		return
	}
	stream, err := store.FindStream(ctx, st, "accounts", "Ada")
	fmt.Println(stream.State, "with", stream.Followers, "behind it", err)

	unblocking := store.Unblocking{Queue: "accounts", Stream: "Ada", Actor: "ann", Reason: "booking-1 was booked by hand"}
	letters, err := st.Unblock(ctx, unblocking)
	fmt.Println("letters let go:", letters, err)
	next, err := st.Claim(ctx, "accounts", nixie.Want{Max: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(next[0].Key, "runs, told of the gap:", next[0].OrderGap)
	// Output:
	// blocked with 1 behind it <nil>
	// letters let go: 1 <nil>
	// booking-2 runs, told of the gap: true
}
