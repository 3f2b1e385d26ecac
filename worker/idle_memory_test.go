package worker_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// A worker that waits for work keeps nothing of its last message, nor of what a store made for that
// claim: a program may have hundreds of idle workers.
func TestAnIdleWorkerKeepsNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last weak.Pointer[nixie.Delivery]
		src := &script{}
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			if last == (weak.Pointer[nixie.Delivery]{}) {
				got := deliveries(1)
				last = weak.Make(got[0])
				return got, nil
			}
			wait(ctx, want.Wait)
			return nil, nil
		}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed)})
		time.Sleep(10 * time.Second)
		src.mu.Lock()
		src.settled = nil
		src.mu.Unlock()
		for range 2 { // the second collection frees what the first one only found
			runtime.GC()
		}
		if last.Value() != nil {
			t.Error("the message is still in memory")
		}
		g.end()
	})
}
