// Package broker is the contract for brokers that keep messages of their own, and
// a channel of a broker as a [nixie.Source].
//
// The work is divided in two. A [Driver] knows one technology: how records are
// received, acknowledged and published, and what that broker can do, which it
// says as a value ([Features]). [Source] knows everything else once for all of
// them: what a settlement means for a broker, where retries wait, what a letter
// looks like on a channel, what keeps its order, how much is in hand.
//
// Nothing is acknowledged before its outcome is kept: a letter is stored, or
// confirmed by the channel that takes it, and only then is its record done with.
// What happens in between is a repeat, never a loss. Package brokertest holds the
// suite that every driver passes.
package broker

import (
	"context"
	"time"
)

// Driver is one technology. Its methods are safe for concurrent use, but that
// Receive is called by one goroutine at a time. A driver decides nothing, repeats
// nothing by itself that may have happened, and hands out a record to one holder
// at a time as far as its broker can tell.
type Driver interface {
	// Features says what the broker can do. It does not change.
	Features() Features

	// Receive hands out up to most records. It waits for the first one for wait at
	// most; when that is over, or ctx ends, it returns none and no error. What it
	// did not hand out because of that comes with the next call.
	Receive(ctx context.Context, most int, wait time.Duration) ([]Record, error)

	// Ack says that records are done with. The i-th error answers the i-th record:
	// [nixie.CodeLeaseLost] means that somebody else has it by now. A broker may be
	// told later; then it hands the record out again after a crash.
	Ack(ctx context.Context, records []*Record) []error

	// Nack gives records to whoever receives next, after delay; without one that they
	// were handed out does not count. It is called only where Features has Nack, with
	// no more delay than MaxDelay.
	Nack(ctx context.Context, records []*Record, delay time.Duration) []error

	// Extend keeps records for lease from now; where they are kept anyway it says
	// of each whether it still is. A lease of 0 asks for those that nobody has begun
	// whether they are to be begun: what is about to be lost is given up by that.
	Extend(ctx context.Context, records []*Record, lease time.Duration) []error

	// Publish adds records to channels, in their order and after those of earlier
	// calls. It returns as soon as they are on their way. The answers are waited for by
	// calling what it returned, once. No error means that the broker has confirmed a
	// record as durably as it can. An unknown channel is [nixie.CodeNotFound], a record
	// that the channel does not take for its size [nixie.CodeLimit];
	// [nixie.CodeOutcomeUnknown] says that it may be there. ctx is for all of it: once
	// it has ended the answers come at once, that one for each record of which nothing
	// is known, and such a one may still arrive.
	Publish(ctx context.Context, records []Publication) (answers func() []error)

	// Describe tells of channels what start-time checks want to know, in the order
	// of the names.
	Describe(ctx context.Context, channels []string) ([]Channel, error)

	// Lost returns a channel that is closed when records in hand are next lost
	// before their time, or about to be; nil if that cannot happen or cannot be
	// noticed.
	Lost() <-chan struct{}

	// Close tells the broker what is acknowledged and gives the rest back. Calls
	// after it get [nixie.CodeUnavailable]. [nixie.CodeOutcomeUnknown] means that the broker
	// may not know what is done; another error that it knows that, and was not told of the end.
	Close(ctx context.Context) error
}

// Recycler is an optional ability of a driver: to use the memory of records again.
type Recycler interface {
	// Recycle takes back what one call of Receive returned, or the beginning of it
	// where the rest was given back. Nobody looks at these records any more, nor at
	// their receipts; keys, values and headers may still be in use. It must not wait.
	Recycle(records []Record)
}

// Grouper is an optional ability of a driver: to hand suspects out in groups of
// [nixie.GroupOf] itself, where single records cannot be given back.
type Grouper interface {
	// Parallel says how many records are run at once, before each Receive.
	Parallel(n int)
}

// Counter is an optional ability of a driver: to tell what its group has not done with.
type Counter interface {
	Remaining(ctx context.Context) (Remaining, error)
}

// Remaining is how many records a group has not done with, on sources and stages.
type Remaining struct {
	All    int64
	Ours   int64         // of those, that this member has in hand or keeps until they are due
	Within time.Duration // so long it takes at most until somebody has what a vanished member had
}

// Publisher is the part of a [Driver] that adds records to channels.
type Publisher interface {
	Publish(ctx context.Context, records []Publication) (answers func() []error)
	Describe(ctx context.Context, channels []string) ([]Channel, error)
}

// Reader reads what lies on one channel, up to where that ended when the reader was
// opened, and remembers record by record what is done with: another reader of the
// same name gets the rest, also that before what is done with. It takes nothing
// away. Each of its methods is for one goroutine at a time, and Done may run beside the
// others; two readers of one name at once may get the same records, and none is
// forgotten by that.
type Reader interface {
	// Next returns up to most records, and none and no error at the end. What it
	// returned before and is not done with comes again to the next reader only. It
	// hands out no more than can be remembered; [nixie.CodeLimit] says that nothing
	// more can before Done, because what is done with lies scattered.
	Next(ctx context.Context, most int) ([]Record, error)
	// Done remembers records that are done with. Each of the lists is about one call of
	// Next that returned records, in their order, and every call has its list, be it an
	// empty one. When it returns, that outlives this process. [nixie.CodeLimit] says that some were not remembered, because so
	// many between them are not done with: they come again.
	Done(ctx context.Context, calls ...[]*Record) error
	// Left is about how many records are yet to come.
	Left() int64
	// Close ends the reader.
	Close()
}

// Follower is an optional ability of a [Reader]: to tell what was added to its channel
// since it was opened.
type Follower interface {
	// Since returns records that were added and that no call before has returned. It
	// waits for none, so a record may come with a later call than the next one.
	Since(ctx context.Context) ([]Record, error)
}

// Features is what a broker can do.
type Features struct {
	System   string        // its name in an [nixie.Origin]: kafka, rabbitmq …
	Held     bool          // a record in hand stays there without being extended
	Nack     bool          // records can be given back one by one
	MaxDelay time.Duration // how long the broker itself can keep a record back; 0: it cannot
	Ordered  bool          // what is published with a key keeps its order among those
	Stages   []Stage       // channels on which records wait, the shortest first; they are received from as well
}

// Record is what a broker hands out. The driver owns its parts; nobody changes
// them.
type Record struct {
	Channel   string
	Source    string // where Channel is a stage, the channel that the record came from first; else empty
	Partition int32
	Offset    int64  // −1: the channel has none
	MessageID string // of a broker that names its messages; else empty
	Key       []byte // nil differs from empty
	Value     []byte // nil differs from empty
	Headers   []RecordHeader
	Timestamp time.Time

	ID              [16]byte // of the place, the same each time the record is handed out
	Epoch           int64    // of the holding; grows each time the channel or partition changes hands, up to 2²³
	Crashes         int      // holders that vanished with it, as far as the driver can tell it from others
	Alone           bool     // the last of those had nothing else in hand, nor had the one before: see [nixie.AloneTwice]
	PriorDeliveries int      // times that it was handed out before and not given back without delay, those included

	Receipt any // the driver's own
}

// Header is a name and bytes that travel with a record. Order and repetitions are
// kept.
type RecordHeader struct {
	Name  string
	Value []byte
}

// Publication is a record on its way to a channel.
type Publication struct {
	Channel string
	Key     []byte // nil differs from empty
	Value   []byte // nil differs from empty
	Headers []RecordHeader
}

// Channel is what a driver found out about one. Facts that a broker does not tell
// are zero.
type Channel struct {
	Name      string
	Missing   bool
	Forbidden bool          // it is there, or not: the client may not know
	MaxBytes  int           // largest record
	Retention time.Duration // −1: for ever
	Compacted bool          // older records of a key go
	Copies    int           // of each record
	Needed    int           // copies that a confirmation waits for
}
