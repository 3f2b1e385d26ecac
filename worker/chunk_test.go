package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// A goroutine takes several quick deliveries at a time. If one of them takes long, other goroutines
// run the rest of its chunk.
func TestSlowDeliveryHoldsUpNoOther(t *testing.T) {
	const many = 64
	synctest.Test(t, func(t *testing.T) {
		var src script
		for range 4 { // the first ones show that they are quick
			var ds []*nixie.Delivery
			for range many {
				ds = append(ds, &nixie.Delivery{Message: nixie.Message{Attempts: 1, Deliveries: 1, Generation: 1}})
			}
			src.feed = append(src.feed, ds)
		}
		last := src.feed[3]
		slow := last[many/2] // in the middle of its chunk
		var begun atomic.Int64
		rest := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		w, err := worker.New(worker.Config{Source: &src, Concurrency: 2, Prefetch: many,
			Handler: nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
				if d == slow {
					select {
					case <-rest:
					case <-ctx.Done():
						return ctx.Err()
					}
				} else if begun.Add(1) == 4*many-1 {
					close(rest)
				}
				return nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		select {
		case <-rest:
		case <-time.After(10 * time.Second):
			t.Errorf("%d of %d began while the slow one ran", begun.Load(), 4*many-1)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
