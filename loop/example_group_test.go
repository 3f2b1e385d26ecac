package loop_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// A group runs a main loop, an evaluation over a mailbox and a consumer of dead letters, with one
// health port and a watchdog.
func ExampleGroup() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := memory.New(memory.Options{})
	quiet := slog.New(slog.DiscardHandler)
	work := worker.Config{Concurrency: 1, Logger: quiet}

	requests, _ := loop.In[loop.Request[string], loop.Result[int]](st, "requests", loop.Config{})
	answers, _ := loop.In[loop.Result[int], struct{}](st, "answers", loop.Config{})
	main, err := loop.NewMainLoop(loop.MainConfig[string, int]{
		Requests: requests, Worker: work,
		Execute: func(ctx context.Context, req loop.Request[string]) (int, error) {
			words := 0
			for range req.Request {
				loop.Beat(ctx) // after each step of what may take long
				words++
			}
			return words, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	port, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // 8080 where it is known to others
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := loop.NewGroup(loop.GroupConfig{
		Loops:     []loop.Loop{main, scores(st, work), alarms(st, work)},
		Health:    port,
		Watchdog:  true,
		Threshold: 720 * time.Second,
		Logger:    quiet,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- group.RunUntilSignal(ctx) }()

	_, _ = requests.Send(ctx, loop.Request[string]{Request: "how long is this"}, loop.ReplyTo(answers.Name()))
	got, _ := answers.Receive(ctx, loop.Wait(20*time.Second))
	fmt.Println("answer:", got[0].Body.Output)
	if r, err := http.Get("http://" + port.Addr().String() + "/health/ready"); err == nil {
		fmt.Println("ready:", r.StatusCode)
		_ = r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	fmt.Println(<-done)
	// Output:
	// answer: 16
	// ready: 200
	// <nil>
}

// scores makes a loop that evaluates the samples of a mailbox.
func scores(st loop.Store, work worker.Config) loop.Loop {
	samples, _ := loop.EvalsIn[string, int](st, "samples", loop.Config{})
	l, err := loop.NewEvalLoop(loop.EvalConfig[string, int, int]{
		Requests: samples, Worker: work,
		Eval: loop.EvalLoop[string, int, int]{
			Run:      func(_ context.Context, s string) (int, error) { return len(s), nil },
			Evaluate: loop.ExactMatch[int](),
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	return l
}

// alarms makes a loop that tells of dead requests.
func alarms(st loop.Store, work worker.Config) loop.Loop {
	dead, _ := loop.In[loop.DeadLetter[loop.Request[string]], struct{}](st, "requests-dlq", loop.Config{})
	l, err := loop.NewConsumer(loop.ConsumerConfig[loop.Request[string]]{
		Mailbox: dead, Worker: work,
		Handle: func(_ context.Context, l loop.DeadLetter[loop.Request[string]]) error {
			fmt.Println("dead:", l.LastError)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	return l
}
