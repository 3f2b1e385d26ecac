package cli

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// fastStop is a publisher that stops waiting for answers at a second interrupt. After the first one
// it waits as long as the route allows.
type fastStop struct {
	broker.Publisher
	open atomic.Int64 // records that have no answer
	stop context.Context
	end  func()
}

// fastStop watches for interrupts until end is called.
func (g *globals) fastStop(ctx context.Context, to broker.Publisher) *fastStop {
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fastStop{Publisher: to, stop: stop}
	end := watchInterrupts(ctx, func() {
		if n := f.open.Load(); n > 0 {
			fmt.Fprintf(g.Err, "\nnixie: no answer of the broker yet for %d records; waiting for %s at most, interrupt again to end now\n",
				n, redrive.DefaultPatience)
		}
	}, cancel)
	f.end = func() {
		end()
		cancel()
	}
	return f
}

// Server implements [broker.Located].
func (f *fastStop) Server(ctx context.Context) (string, error) {
	return broker.ServerOf(ctx, f.Publisher)
}

// Publish implements [broker.Publisher].
func (f *fastStop) Publish(ctx context.Context, list []broker.Publication) func() []error {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(f.stop, cancel)
	f.open.Add(int64(len(list)))
	answers := f.Publisher.Publish(ctx, list)
	return func() []error {
		defer cancel()
		defer detach()
		defer f.open.Add(-int64(len(list)))
		return answers()
	}
}
