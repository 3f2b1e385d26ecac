package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// hurried is a publisher of whose answers nobody waits any longer after a second
// interrupt. At the first one they are waited for as long as a route says.
type hurried struct {
	broker.Publisher
	open  atomic.Int64 // records that have no answer
	hurry context.Context
	end   func()
}

// hurry watches for interrupts until the publisher is ended.
func (g *globals) hurry(ctx context.Context, to broker.Publisher) *hurried {
	h := &hurried{Publisher: to}
	second := make(chan os.Signal, 2)
	signal.Notify(second, stopSignals()...)
	var hurry func()
	h.hurry, hurry = context.WithCancel(context.WithoutCancel(ctx))
	over, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		defer hurry()
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		if n := h.open.Load(); n > 0 {
			fmt.Fprintf(g.Err, "\nnixie: no answer of the broker yet for %d records; waiting for %s at most, interrupt again to end now\n", n, redrive.DefaultPatience)
		}
		for heard := 0; heard < 2; heard++ { // the first is the one that ended ctx
			select {
			case <-over:
				return
			case <-second:
			}
		}
	}()
	h.end = func() {
		signal.Stop(second)
		close(over)
		<-finished
	}
	return h
}

// Publish implements [broker.Publisher].
func (h *hurried) Publish(ctx context.Context, list []broker.Publication) func() []error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.hurry, cancel)
	h.open.Add(int64(len(list)))
	answers := h.Publisher.Publish(ctx, list)
	return func() []error {
		defer cancel()
		defer stop()
		defer h.open.Add(-int64(len(list)))
		return answers()
	}
}
