package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// The store in memory is for tests: an option sets its clock, and a handle can die as a process
// does.
func ExampleStore_Crash() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first := memory.New(memory.Options{Owner: "first", Clock: func() time.Time { return now }})
	second := first.Join("second")
	ctx := context.Background()
	if _, err := first.Enqueue(ctx, nixie.Message{Queue: "billing"}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := first.Claim(ctx, "billing", nixie.Want{Max: 1}); err != nil {
		fmt.Println(err)
		return
	}
	held, err := second.Claim(ctx, "billing", nixie.Want{Max: 1})
	fmt.Println("while it is held:", len(held), err)

	first.Crash()
	got, err := second.Claim(ctx, "billing", nixie.Want{Max: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("abandoned by", got[0].AbandonedBy, "after", got[0].Crashes, "crash")
	// Output:
	// while it is held: 0 <nil>
	// abandoned by first after 1 crash
}

// A paused queue hands out nothing. All other calls still work.
func ExampleStore_Adjust() {
	st := memory.New(memory.Options{})
	ctx := context.Background()
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "billing"}); err != nil {
		fmt.Println(err)
		return
	}
	for _, paused := range []bool{true, false} {
		if err := store.Configure(ctx, st, "billing", nixie.QueueSettings{Paused: paused}, "ann", "the bank moves"); err != nil {
			fmt.Println(err)
			return
		}
		got, err := st.Claim(ctx, "billing", nixie.Want{Max: 1})
		fmt.Println("paused:", paused, "handed out:", len(got), err)
	}
	// Output:
	// paused: true handed out: 0 <nil>
	// paused: false handed out: 1 <nil>
}
