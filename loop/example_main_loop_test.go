package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

var errContentPolicy = errors.New("content policy violation")

// Requests are executed and answered. What fails for good is answered too, once its letter is safe.
func ExampleMainLoop() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := memory.New(memory.Options{})
	requests, _ := loop.In[loop.Request[string], loop.Result[int]](st, "requests", loop.Config{})
	answers, _ := loop.In[loop.Result[int], struct{}](st, "answers", loop.Config{})

	main, err := loop.NewMainLoop(loop.MainConfig[string, int]{
		Requests: requests,
		Execute: func(ctx context.Context, req loop.Request[string]) (int, error) {
			if req.Request == "how to pick a lock" {
				return 0, errContentPolicy
			}
			return len(req.Request), nil
		},
		DLQ: loop.DLQPolicy{
			MaxDeliveryCount: 5,
			Include:          []policy.Matcher{policy.MatchError(errContentPolicy)}, // dies at once
		},
		Worker: worker.Config{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- main.Run(ctx) }()

	for _, ask := range []string{"how long is this", "how to pick a lock"} {
		if _, err := requests.Send(ctx, loop.Request[string]{Request: ask}, loop.ReplyTo(answers.Name())); err != nil {
			fmt.Println(err)
		}
		got, _ := answers.Receive(ctx, loop.Wait(20*time.Second))
		fmt.Printf("%d %q\n", got[0].Body.Output, got[0].Body.Error)
		_ = got[0].Acknowledge(ctx)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// 16 ""
	// 0 "Dead-lettered after 1 attempts: content policy violation"
	// <nil>
}
