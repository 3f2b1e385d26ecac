package lease

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// LossNotifier is an optional ability of a source: it reports that leases may be lost before
// their time, for example because a broker assigns partitions anew.
type LossNotifier interface {
	// LeasesLost returns a channel that is closed when that happens next. Extend then tells which
	// leases were lost. The channel is nil where it cannot happen.
	LeasesLost() <-chan struct{}
}

// Renewer is an optional ability of a source: it has messages in hand whose leases end by time, and
// no worker has got some of them yet.
type Renewer interface {
	// MaxLease returns the longest lease of the source; 0 is any. A worker refuses to start with a
	// longer one.
	MaxLease() time.Duration
	// Renew extends the leases of what no worker has got. A worker calls it when it renews its own
	// leases; who has no worker calls it after each third of a lease.
	Renew(ctx context.Context, lease time.Duration) error
}

// Listener is an optional ability of a source: it hears of work, and need not be asked often. A
// receive that does not wait and brings nothing means that nothing can run now.
type Listener interface {
	// Patience returns how long a worker may wait for work in one receive; 0 leaves it to the
	// worker.
	Patience() time.Duration
}

// Exchanger is an optional ability of a source: it settles and receives in one call.
type Exchanger interface {
	// Exchange is Settle and then Receive, for less than both cost where the source can do so. The
	// i-th error answers the i-th settlement, and the last result tells of the receive. One fails
	// without the other.
	Exchange(ctx context.Context, settlements []nixie.Settlement, want nixie.Want) ([]error, []*nixie.Delivery, error)
}

// PolicyKeeper is an optional ability of a source: it knows the policies that are stored with its
// queues, for workers that have no policy of their own.
type PolicyKeeper interface {
	// Policies returns [nixie.QueueSettings].Policy by queue, without the queues that have none.
	Policies(ctx context.Context) (map[string]string, error)
}

// BreakerKeeper is an optional ability of a source: it tells operators of circuit breakers.
type BreakerKeeper interface {
	// KeepBreaker takes in that a breaker of a worker on the source entered another state.
	KeepBreaker(ctx context.Context, change nixie.BreakerChange) error
}

// Stopper is an optional ability of a source: it remembers for others whether this process was told
// to stop. What a told process leaves behind is no crash, however it ends.
type Stopper interface {
	// Stopping notes that this process was told to stop, or with false that it works on. A worker
	// calls it with true, for at most 1 s and before anything else, when the context of its Run
	// ends, and with false when Run begins. It costs nothing if nothing changes.
	Stopping(ctx context.Context, told bool) error
}

// CancelTeller is an optional ability of a source: it knows which messages operators canceled.
type CancelTeller interface {
	// Canceled returns the cancels of those of the messages that were canceled; at most
	// [nixie.MaxBatch] at a time. A worker asks once a second while handlers run, in one call for
	// all of them, and when leases were lost.
	Canceled(ctx context.Context, ids []nixie.ID) (map[nixie.ID]Cancel, error)
}

// Cancel tells who canceled a message, and why.
type Cancel struct{ By, Reason string }

// SlowSettler is an optional ability of a source: it reports the settlements that wait for a third
// party, such as a broker that confirms a letter. A worker settles them in calls of their own,
// concurrently with the others and as long as they take. The context of these calls ends 30 s
// after the worker's last handler has returned.
type SlowSettler interface {
	// Slow reports whether the settlement waits for a third party.
	Slow(st *nixie.Settlement) bool
}
