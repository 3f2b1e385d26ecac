// Package broker holds the contract for message brokers such as Kafka, and makes a [nixie.Source]
// of the channels of a broker.
//
// The work is divided in two. A [Driver] knows one technology: it receives, acknowledges and
// publishes records, and reports in [Features] what its broker can do. [Source] does the rest once
// for all drivers. It applies settlements, moves retries, writes letters, keeps records in order
// and limits how many are in hand.
//
// [Source] never acknowledges a record before its outcome is durable. A store or a channel confirms
// the letter first; only then does the driver acknowledge the record. After a crash in between the
// record is processed again and never lost. Package brokertest holds the suite that every driver
// passes.
package broker

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Driver connects one broker technology. All methods are safe for concurrent use, except that one
// goroutine at a time calls Receive. A driver decides nothing about messages, and never repeats a
// call by itself that may have taken effect. It hands a record to one holder at a time, as far as
// its broker can tell.
type Driver interface {
	// Features returns what the broker can do. The answer never changes.
	Features() Features

	// Receive hands out up to Max records. It waits for the first one for at most Wait, or until
	// ctx ends, and then returns none and no error. The next call returns what this one fetched too
	// late. A driver whose Features are not Held keeps the records for Lease.
	Receive(ctx context.Context, want Want) ([]Record, error)

	// Ack tells the broker that records are done. The i-th error answers the i-th record;
	// [nixie.CodeLeaseLost] means that another consumer has the record by now. A driver may tell
	// the broker later. If it crashes before that, the broker hands the record out again.
	Ack(ctx context.Context, records []*Record) []error

	// Nack gives records back; the broker hands each to any consumer after its delay. The i-th
	// error answers the i-th record, as of Ack. [Source] calls Nack only if Features has Nack, with
	// delays of at most MaxDelay.
	Nack(ctx context.Context, list []Return) []error

	// Extend keeps records for lease from now. Where the broker keeps records anyway, Extend only
	// answers whether the driver still holds each one. A lease of 0 asks, for records that no
	// worker has begun, whether a worker may begin them. The driver then gives up those that it is
	// about to lose.
	Extend(ctx context.Context, records []*Record, lease time.Duration) []error

	// Publish adds records to channels, in their order and after those of earlier calls. It returns
	// as soon as they are under way. The caller calls answers once, to wait for the outcomes.
	//
	//	no error                   the broker has stored the record as durably as it can
	//	nixie.CodeNotFound         there is no such channel
	//	nixie.CodeLimit            the record is too large for the channel
	//	nixie.CodeOutcomeUnknown   the broker may have stored the record
	//
	// Ctx limits all of it. When it ends, answers returns at once with CodeOutcomeUnknown for each
	// record without an outcome. Such a record may still arrive.
	Publish(ctx context.Context, records []Publication) (answers func() []error)

	// Describe reports what [Source.Check] asks about channels, in the order of the names.
	Describe(ctx context.Context, channels []string) ([]Channel, error)

	// Lost returns a channel that the driver closes when it next loses records in hand, or is about
	// to. It returns nil if the driver cannot lose them or cannot notice it.
	Lost() <-chan struct{}

	// Close tells the broker what is acknowledged and gives the rest back. Later calls get
	// [nixie.CodeUnavailable]. [nixie.CodeOutcomeUnknown] means that the broker may not know what
	// is done. Any other error means that the broker knows it, but was not told that the driver
	// left.
	Close(ctx context.Context) error
}

// Want tells [Driver].Receive what to hand out.
type Want struct {
	Max   int
	Wait  time.Duration // for the first record
	Lease time.Duration
}

// Return is a record that its holder gives back.
type Return struct {
	Record   *Record
	Delay    time.Duration
	As       Given
	Patience nixie.Patience // of the message from now on; a record that is Unused keeps its own
}

// Given tells how a record was given back.
type Given byte

// How a record is given back.
const (
	Unused   Given = iota // no worker has begun it: nothing counts
	Released              // a worker released it: it counts as a delivery
	Failed                // it failed: it counts as a delivery and as an attempt
)

// Recycler is an optional ability of a driver: it uses the memory of records again.
type Recycler interface {
	// Recycle takes back the records of one call of Receive, or the first part of them if the
	// source gave the rest back. The source does not touch these records and their receipts any
	// more. Keys, values and headers may still be in use. Recycle must not wait.
	Recycle(records []Record)
}

// Grouper is an optional ability of a driver that cannot give single records back: it hands out
// suspects in groups of [lease.GroupSize] itself.
type Grouper interface {
	// Parallel tells the driver how many records run at once. The source calls it before each
	// Receive.
	Parallel(n int)
}

// Counter is an optional ability of a driver: it counts the records that its consumer group has not
// finished.
type Counter interface {
	Remaining(ctx context.Context) (Remaining, error)
}

// Remaining counts the records that a group has not finished, on sources and stages.
type Remaining struct {
	All    int64
	Ours   int64         // of All: in the hand of this member, or kept by it until they are due
	Within time.Duration // at most this long until another member has what a vanished member had
}

// Publisher is the part of a [Driver] that adds records to channels.
type Publisher interface {
	Publish(ctx context.Context, records []Publication) (answers func() []error)
	Describe(ctx context.Context, channels []string) ([]Channel, error)
}

// Located is an optional ability of a [Publisher]: it tells the identity of its server or cluster,
// as it is in a [nixie.Origin]; empty is unknown.
type Located interface {
	Server(ctx context.Context) (string, error)
}

// ServerOf asks a publisher for its server, if it can tell.
func ServerOf(ctx context.Context, p Publisher) (string, error) {
	if l, ok := p.(Located); ok {
		return l.Server(ctx)
	}
	return "", nil
}

// Reader reads one channel, up to the end that the channel had when the reader was opened. It
// removes nothing. The caller marks records as done one by one; the next reader of the same name
// gets all others, also those before a done one.
//
// One goroutine at a time calls each method; Done may run concurrently with the others. Two readers
// of one name may get the same records, and none is forgotten because of that.
type Reader interface {
	// Next returns up to most records, and none and no error at the end. Records that are returned
	// and not marked as done come again only to the next reader. Next returns no more records than
	// Done could still remember. If done records lie so scattered that it can return none before
	// the next Done, it answers [nixie.CodeLimit]. A record that points to another one has its
	// Original, if the reader can look for it.
	Next(ctx context.Context, most int) ([]Record, error)
	// Done remembers records as done; once it returns, the memory outlives this process. Each list
	// answers one call of Next that returned records, in the order of the calls. A call of which
	// nothing is done has an empty list. [nixie.CodeLimit] means that Done could not remember some
	// records, because too many gaps lie between them: they come again.
	Done(ctx context.Context, calls ...[]*Record) error
	// Left estimates how many records are still to come.
	Left() int64
	// Close ends the reader.
	Close()
}

// Follower is an optional ability of a [Reader]: it reads what producers added to the channel since
// the reader was opened.
type Follower interface {
	// Since returns added records that no earlier call returned, perhaps together with an error. It
	// does not wait, so a record may come only with a later call.
	Since(ctx context.Context) ([]Record, error)
}

// Features tells what a broker can do.
type Features struct {
	System   string        // its name in a [nixie.Origin]: kafka, rabbitmq …
	Held     bool          // a record stays with its holder without being extended
	MaxLease time.Duration // longest lease; 0: any
	Nack     bool          // the driver can give records back one by one
	MaxDelay time.Duration // longest delay of Nack; 0: the broker cannot delay a record
	Ordered  bool          // records of one key keep the order in which they were published
	Stages   []Stage       // channels where retries wait, the shortest first; their records come by Receive when due

	// CountsAll tells that the broker counts every delivery, and not how it ended. Each one before
	// this one may then have been a crash; the driver leaves Crashes of a [Record] at 0.
	CountsAll bool

	// MaxPublishDelay is the longest delay of a [Publication]; 0: none. Then retries wait on the
	// channel that their record came from.
	MaxPublishDelay time.Duration
}

// Record is one message as a broker hands it out. The driver owns its parts; no other code changes
// them.
type Record struct {
	Channel   string
	Source    string // if Channel is a stage: the channel that the record came from first; else empty; see [Features].MaxPublishDelay
	Partition int32
	Offset    int64  // −1: the channel has no offsets
	MessageID string // if the broker names its messages; else empty
	Server    string // identity of the server or cluster; empty: unknown
	Key       []byte // nil differs from empty
	Value     []byte // nil differs from empty
	Headers   []RecordHeader
	Original  *Original // that it points to, see [PointsTo]; nil: a record of its own, or not looked for
	Timestamp time.Time
	Damage    string        // why it could not be read whole; Value is then all that lies there
	Retention time.Duration // how long the channel keeps a message from its first record on; 0: the broker does not tell

	ID              [16]byte       // of this position in the channel: the same at each delivery
	Epoch           int64          // grows each time the channel or partition changes hands, up to 2²³
	Crashes         int            // holders that vanished with it, as far as the driver can tell
	Alone           bool           // the last two of those had nothing else in hand: see [lease.AloneTwice]
	PriorDeliveries int            // deliveries before this one that ended as attempts, crashes included; see [Return]
	Releases        int            // deliveries before this one that were [Released]
	Patience        nixie.Patience // as of the last [Return], where the broker can keep it

	// What else tells it from a record of the same name elsewhere, as in a [nixie.Origin]. Empty is
	// unknown.
	Database, Prefix string
	BodyHash         []byte

	Receipt any // for the driver's own use
}

// RecordHeader is a name and bytes that travel with a record. Brokers keep the order of headers,
// and repeated names.
type RecordHeader struct {
	Name  string
	Value []byte
}

// Publication is a record to add to a channel.
type Publication struct {
	Channel string
	Key     []byte // nil differs from empty
	Value   []byte // nil differs from empty
	Headers []RecordHeader
	Delay   time.Duration // before the broker hands it out; at most MaxPublishDelay of [Features]
	Origin  *nixie.Origin // of a redriven record: where it died; nil: it is not known

	// Partition of the channel to which the record goes, while it has that one. By default, and on
	// channels without partitions, the key decides.
	Partition *int32

	// Once is a key of the record, or empty. A broker that can remember keys does not add a record
	// whose key the channel had within the last 24 hours, and answers as if it did. Others add it.
	Once string
}

// Channel holds what a driver knows about one channel. Facts that the broker does not tell are
// zero.
type Channel struct {
	Name      string
	Missing   bool
	Forbidden bool          // the client may not know whether the channel exists
	MaxBytes  int           // size of the largest record that it takes
	Retention time.Duration // −1: for ever
	Compacted bool          // the broker deletes older records of a key
	Copies    int           // replicas of each record
	Needed    int           // replicas that must have a record before the broker confirms it
}
