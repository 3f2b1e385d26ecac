package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Features is what a store can do beside its contract; nil is what it cannot. The
// functions are safe for concurrent use.
type Features struct {
	Streams Streams // where queues can have an order

	// Check reads everything and reports what breaks an invariant.
	Check func(ctx context.Context) (Report, error)

	// Inspect looks how the store itself is, without changing anything. What is wrong is
	// in the answer; an error says that it could not be found out.
	Inspect func(ctx context.Context) (Health, error)

	// Patience is how long those who work go on trying while calls fail with err, before
	// they give up; 0 leaves it to them. A store may be away for a while, as a server is
	// that is started again, or a disk that is full until somebody makes room.
	Patience func(err error) time.Duration

	// Wake returns a channel that is closed when this process next adds due
	// work to the queue. It is a hint: work of other processes and retries
	// that become due do not close it, unless Watch watches.
	Wake func(queue string) <-chan struct{}

	// Watch lets the channels of Wake be closed, until stop is called, whenever a claim
	// of the queue may find something: also what other processes add, what becomes due,
	// and what a holder lost by its time or its death. It is seen 50 ms late at most, or
	// where that needs a notification which did not come, one second. So those who wait
	// need not claim in vain.
	Watch func(queues ...string) (stop func())

	// Await is Claim that waits for work, up to want.Wait, and returns none when
	// that is over: it hands out work in the very commit that brings it. The last claim
	// found nothing, and idle is the channel that Wake returned before it; when that is
	// closed Await claims.
	Await func(ctx context.Context, queue string, want nixie.Want, idle <-chan struct{}) ([]*nixie.Delivery, error)
}

// Configure sets the settings of a queue whatever was set before, creating it if need be.
func Configure(ctx context.Context, st Overview, queue string, settings nixie.QueueSettings, actor, reason string) error {
	_, err := st.Adjust(ctx, queue, actor, reason, func(now *nixie.QueueSettings) error {
		*now = settings
		return nil
	})
	return err
}
