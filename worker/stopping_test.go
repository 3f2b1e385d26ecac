package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// stoppable is a source that is told of stops. It notes what it hears in order.
type stoppable struct {
	*script
	slow bool // it answers only at the end of the context

	mu    sync.Mutex
	heard []string
}

func (s *stoppable) hear(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, word)
}

func (s *stoppable) Stopping(ctx context.Context, told bool) error {
	s.hear(map[bool]string{true: "stops", false: "works"}[told])
	if s.slow && told {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

func (s *stoppable) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	for i := range sts {
		s.hear(string(sts[i].Verb) + string(sts[i].Waiver))
	}
	return s.script.Settle(ctx, sts)
}

// A worker that is told to stop says so before anything else, starts nothing meanwhile, and goes
// on after a second without an answer. What the stop interrupts costs its message nothing; what
// had not begun costs a delivery.
func TestStopIsToldFirst(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			src := &stoppable{script: &script{feed: [][]*nixie.Delivery{deliveries(3)}}, slow: slow}
			begun := 0
			g := start(t, worker.Config{Source: src, Concurrency: 1, Drain: 10 * time.Second,
				Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
					begun++
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Duration(begun*begun*begun) * 1500 * time.Millisecond): // 1.5 s, then 12 s
						return nil
					}
				})})
			time.Sleep(2 * time.Second) // the second one runs
			told := time.Now()
			g.end()
			took, want := time.Since(told), 10*time.Second
			if slow {
				want += time.Second
			}
			if took != want || begun != 2 {
				t.Errorf("slow %v: stopped after %s, %d begun", slow, took, begun)
			}
			if want := []string{"works", "complete", "stops", "release", "releasestopping"}; !slices.Equal(src.heard, want) {
				t.Errorf("slow %v: the source heard %q, want %q", slow, src.heard, want)
			}
		})
	}
}

// A worker that ends by itself was not told to stop: its process may go on.
func TestEndByItselfIsNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stoppable{script: &script{feed: [][]*nixie.Delivery{deliveries(1)}}}
		g := start(t, worker.Config{Source: src, Until: worker.Until{Idle: true},
			Handler: handler(func(context.Context, *nixie.Delivery) error { return nil })})
		if err := <-g.done; err != nil || !slices.Equal(src.heard, []string{"works", "complete"}) {
			t.Errorf("%v: the source heard %q", err, src.heard)
		}
	})
}
