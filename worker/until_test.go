package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// A worker ends by itself when nothing can run now, or when it has asked often enough, and not
// before what it has in hand is done.
func TestUntil(t *testing.T) {
	for name, c := range map[string]struct {
		until   worker.Until
		add     []nixie.Message
		runs    int // of handlers, which take 10 s each
		waiting int
		took    time.Duration // whole seconds
	}{
		"idle, without work":      {worker.Until{Idle: true}, nil, 0, 0, 0},
		"idle":                    {worker.Until{Idle: true}, bodies("a", "b", "c"), 3, 0, 30 * time.Second},
		"idle, and counting":      {worker.Until{Idle: true, Receives: 100}, bodies("a", "b", "c"), 3, 0, 30 * time.Second},
		"idle, with a later one":  {worker.Until{Idle: true}, append(bodies("a"), nixie.Message{Delay: time.Hour}), 1, 1, 10 * time.Second},
		"idle, with a retry":      {worker.Until{Idle: true}, bodies("fails", "a"), 2, 1, 20 * time.Second},
		"one receive":             {worker.Until{Receives: 1}, bodies("adds", "b", "c"), 1, 3, 10 * time.Second},
		"receives, without work":  {worker.Until{Receives: 3}, nil, 0, 0, 3 * time.Second},
		"idle, before the count":  {worker.Until{Idle: true, Receives: 100}, nil, 0, 0, 0},
		"idle, with a new one":    {worker.Until{Idle: true}, bodies("adds"), 2, 0, 20 * time.Second},
		"idle, after a vanishing": {worker.Until{Idle: true}, bodies("vanished"), 1, 0, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				enqueue := func(m nixie.Message) {
					m.Queue = "q"
					if _, err := st.Enqueue(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				for _, m := range c.add {
					enqueue(m)
				}
				if name == "idle, after a vanishing" {
					if _, err := st.Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: time.Second}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
				}
				runs := 0
				slow, err := policy.New(policy.Config{Backoff: policy.Backoff{
					Formula: policy.Fixed, Base: 5 * time.Minute, Jitter: policy.JitterNone,
				}})
				if err != nil {
					t.Fatal(err)
				}
				w, err := worker.New(worker.Config{Source: store.NewSource(st, "q"), Policy: slow, Concurrency: 1, Until: c.until,
					Logger: slog.New(slog.DiscardHandler),
					Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						runs++
						time.Sleep(10 * time.Second)
						switch string(d.Body) {
						case "fails":
							return errBoom
						case "adds":
							enqueue(nixie.Message{Body: []byte("added")})
						}
						return nil
					})})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if err := w.Run(t.Context()); err != nil {
					t.Error(err)
				}
				queues, err := st.Queues(t.Context(), store.QueueQuery{})
				if err != nil {
					t.Fatal(err)
				}
				waiting := 0
				for i := range queues {
					waiting += int(queues[i].Unfinished())
				}
				if took := time.Since(begun).Truncate(time.Second); runs != c.runs || waiting != c.waiting || took != c.took {
					t.Errorf("%d runs, %d wait, after %s; want %d, %d, %s", runs, waiting, took, c.runs, c.waiting, c.took)
				}
			})
		})
	}
}

// bodies makes messages with these bodies.
func bodies(texts ...string) (list []nixie.Message) {
	for _, text := range texts {
		list = append(list, nixie.Message{Body: []byte(text)})
	}
	return list
}
