package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Features has the optional abilities of a store; nil means that it lacks one. The functions are
// safe for concurrent use.
type Features struct {
	Streams   Streams // of stores whose queues can have an order
	Documents Documents

	// Ended lists the generations of messages that ended, newest first.
	Ended func(ctx context.Context, q EndedQuery, page Page) ([]Ended, string, error)

	// Check reads everything and reports broken invariants.
	Check func(ctx context.Context) (Report, error)

	// Inspect reports the state of the store itself, without changing anything. An error says that
	// it could not find out.
	Inspect func(ctx context.Context) (Health, error)

	// Ping checks that the store answers, and that its files are those that it opened. It returns
	// the version of the schema in the store, and the one that this program knows. It costs a row.
	Ping func(ctx context.Context) (schema, known int, err error)

	// Tried notes in the audit of a queue that an operator tried a command on copies of its
	// letters, see [OnTry]. It changes nothing else. A queue that does not exist gets CodeNotFound.
	Tried func(ctx context.Context, queue, actor, reason string) error

	// Regroup changes label and fingerprint of letters and nothing else, in one transaction. The
	// item of the redrive that moved a letter last follows, so that a later death is still compared
	// with the group of the letter. The i-th error answers the i-th letter: CodeConflict if it is
	// redriving, is selected by an operation that has not ended, or has another revision by now,
	// and CodeNotFound if it is gone. Such errors do not name the letter. Queues whose letters it
	// changed have an audit entry of [OnRegroup] each.
	Regroup func(ctx context.Context, r Regrouping) []error

	// Patience returns how long a worker tries again while calls fail with err; 0 leaves it to the
	// worker. A store may be away for a while, such as a server that restarts or a disk that is
	// full.
	Patience func(err error) time.Duration

	// Stopping keeps whether this process was told to stop, as [lease.Stopper] says.
	Stopping func(ctx context.Context, told bool) error

	// Canceled returns those of the messages that were canceled. A store has it where that is
	// cheaper than a look for their entries in the audit.
	Canceled func(ctx context.Context, ids []nixie.ID) ([]nixie.ID, error)

	// Wake returns a channel that is closed when this process next adds due work to the queue. It
	// is a hint: work of other processes and retries that become due do not close it, unless Watch
	// runs.
	Wake func(queue string) <-chan struct{}

	// Watch closes the channels of Wake whenever a claim of the queue may find work, until stop is
	// called: also for messages of other processes, messages that become due, and leases that end
	// by time or death. It does so at most 50 ms late, or one second if a notification of the store
	// is lost. So an idle worker need not poll.
	Watch func(queues ...string) (stop func())

	// Await claims like Claim, but waits for work up to want.Wait, and returns none after that. It
	// hands out work in the same commit that adds it. A caller whose last claim found nothing gives
	// as idle the channel that Wake returned before that claim; Await claims when it is closed.
	Await func(ctx context.Context, queue string, want nixie.Want, idle <-chan struct{}) ([]*nixie.Delivery, error)

	// Exchange is Settle and then Claim, in one transaction. The i-th error answers the i-th
	// settlement, and the last result tells of the claim. If the claim fails, the settlements are
	// made without it, unless the store is away or the outcome is unknown.
	Exchange func(ctx context.Context, settlements []nixie.Settlement, queue string, want nixie.Want) ([]error, []*nixie.Delivery, error)
}

// Configure replaces the settings of a queue, and creates it if there is none.
func Configure(ctx context.Context, st Overview, queue string, settings nixie.QueueSettings, actor, reason string) error {
	_, err := st.Adjust(ctx, queue, actor, reason, func(now *nixie.QueueSettings) error {
		*now = settings
		return nil
	})
	return err
}
