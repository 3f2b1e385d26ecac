package worker

import (
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// Config of a worker. Zero fields mean the default, −1 none.
type Config struct {
	Source  nixie.Source  // required
	Handler nixie.Handler // required, except for a Desk

	// Use wraps Handler, the first outermost: around each run of a handler it may add to the
	// context, measure, or change the error. The limits of a handler of [nixie.Routes] stay.
	Use []func(nixie.Handler) nixie.Handler

	// Policy decides about all deliveries. Without it the policy in the settings of each queue
	// decides, or else the profile nixie. The worker reads those settings again when it receives
	// something and its copy is older than 5 s.
	Policy  *policy.Policy
	Decider policy.Decider // decides instead of Policy, which still diagnoses

	// Mask hides secrets in the texts of failures before the decision, the source and the
	// observer see them. See package privacy; default none. A Decider that makes texts of its
	// own from errors has to mask them itself.
	Mask func(*nixie.Failure)

	Concurrency int           // handlers at once; default the number of processors; at most 10,000
	Prefetch    int           // most deliveries in hand; default 1000, or twice Concurrency if that is more; at most 10,000
	Lease       time.Duration // of each claim; default 30 s; see [nixie.MinLease]
	Timeout     time.Duration // of one attempt, unless its route has one; default none
	Drain       time.Duration // handlers may go on this long after Run's context has ended; default 30 s, −1 not at all

	// Renewal changes how leases are renewed. The zero value renews each for Lease, after a third
	// of that.
	Renewal Renewal

	// Beat is called by the goroutine that receives, whenever it goes on: at the latest after
	// [Worker.Wait] and a call of the source, also while handlers run. While another call of the
	// source lasts longer than it may, there is no beat. So a watchdog hears that the worker is
	// well. It must not block, or call the worker. Default none.
	Beat func()

	// Until ends Run by itself. The zero value does not.
	Until Until

	// Breaker configures circuit breakers: one for each message type and reason of failure.
	// While one is open the worker runs nothing of that type but tries, and uses no attempt; see
	// docs/policy.md. Default that of the profile of the policy: 10 different messages in a row
	// that fail for one reason that time may heal, 5 with Concurrency 1. Failures −1 is none. A
	// Desk has none.
	Breaker policy.BreakerRules

	// Awaited says that a caller waits for the end of the work, as of a job. While nothing has
	// succeeded, failures of every reason open the default breaker. It is tried every 15 s at
	// least, and not every 5 min.
	Awaited bool

	// HaltAfter ends Run with a [*HaltedError] when it has seen no success, and a breaker has been
	// open for so long; the last try is then. It ends at once when all attempts failed with exit
	// code 126 or 127: their command cannot be run. Handlers that run may finish, and what is left
	// stays queued. Default 0, which is never.
	HaltAfter time.Duration

	// SettleEach makes a goroutine wait until its last delivery is settled before it begins the
	// next. So a crash makes at most Concurrency deliveries run twice.
	SettleEach bool

	// ProgressLog, the store behind Source, makes SettleEach cheaper. The worker logs the progress
	// of deliveries there and does not wait for successes: it settles them together, at most
	// 50 ms later. A crash costs nothing to deliveries that had not begun. The worker holds no more
	// than it runs in 200 ms, or twice Concurrency.
	ProgressLog lease.ProgressLog

	Name     string           // the worker in failures; default host:pid
	Node     string           // default the host's name
	Queue    string           // name for the observer; default the source's, if it has one
	Clock    func() time.Time // for deadlines, leases and records; default time.Now; pauses and ticks are real time
	Observer *nixie.Observer

	// Logger gets the events that a person has to know:
	//
	//	warn   a death; deaths of one group that are settled together share a line
	//	error  a condition begins: a lost lease, an outcome that came too late, a failing source
	//	info   the condition ends
	//
	// Texts of failures are masked and cut at 500 bytes. No line has bodies, headers or keys.
	// Default [slog.Default]; [slog.DiscardHandler] makes it silent.
	Logger *slog.Logger

	events   *eventLog
	policies *policies
	timeouts map[string]time.Duration // of the routes that have one
}

// Renewal says how leases are renewed.
type Renewal struct {
	Every time.Duration // default a third of For
	For   time.Duration // what a lease has left at least after a renewal; default and at most Lease

	// While is asked about deliveries whose handlers run: those that it refuses are not renewed,
	// and the contexts of their handlers end before their leases do. Default all are renewed.
	While func(*nixie.Delivery) bool
}

// Limits of the loop.
const (
	defaultPrefetch = 1000
	defaultDrain    = 30 * time.Second
	stuckAfter      = 5 * time.Second        // Run waits this long for handlers that ignore the end of their context
	settleGrace     = 30 * time.Second       // the settler repeats outcomes this long after the last handler has returned
	callLimit       = 30 * time.Second       // longest call of the source, in addition to its waiting for work
	pollWait        = time.Second            // longest wait of one receive for work, unless the source is a lease.Listener
	drainWait       = 25 * time.Millisecond  // the same with Until.Idle, while something is in hand
	idleGap         = 10 * time.Millisecond  // between two receives, if the source has nothing and does not wait
	firstPause      = 100 * time.Millisecond // after a call that failed; doubled each time,
	maxPause        = 5 * time.Second        // up to this
	pauseParts      = 10                     // a pause, or a wait for work, takes at most a tenth of a lease
	watchParts      = 50                     // the watchdog sees the end of a timeout or lease late by at most a fiftieth of it,
	watchLeast      = 10 * time.Millisecond  // but it ticks at most this often
	watchMost       = 250 * time.Millisecond // and at least this often
	gatherTime      = 50 * time.Millisecond  // the settler gathers logged successes this long
	loggedAhead     = 200 * time.Millisecond // with a ProgressLog the worker holds no more than it runs in this time
	renewParts      = 3                      // the worker renews a lease after each third of it, or more often
	margin          = 5                      // the context of a handler ends a fifth of a lease before the lease can
)

func (c Config) withDefaults() (Config, error) {
	if c.Source == nil {
		return c, nixie.Errorf(nixie.CodeInvalid, "worker has no source: set Source")
	}
	if c.Concurrency == 0 {
		c.Concurrency = runtime.GOMAXPROCS(0)
	}
	if c.Prefetch == 0 {
		c.Prefetch = min(max(defaultPrefetch, 2*c.Concurrency), nixie.MaxBatch)
	}
	if c.Lease == 0 {
		c.Lease = nixie.DefaultLease
	}
	if c.Renewal.For == 0 {
		c.Renewal.For = c.Lease
	}
	if c.Renewal.Every == 0 {
		c.Renewal.Every = c.Renewal.For / renewParts
	}
	if c.Drain == 0 {
		c.Drain = defaultDrain
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the default
	}
	routes, err := c.limits()
	if err != nil {
		return c, err
	}
	if c.policies, err = newPolicies(&c, routes); err != nil {
		return c, err
	}
	if c.Decider == nil {
		c.Decider = c.policies
	}
	c.nameIt()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Observer = c.Observer.Complete()
	c.events = newEventLog(c.Logger, c.Queue, c.Clock)
	return c, c.check()
}

// Until ends [Worker.Run] when one of its fields says so, nothing is in hand, and the source
// answers.
type Until struct {
	// Idle ends it when the source has nothing that can run now. What is put off, or waits for a
	// retry, stays. Over a store it ends within 100 ms of its last item, over a broker within two
	// waits for work, see [Worker.Wait].
	Idle bool

	// Receives ends it when the worker has asked the source this many times, and has handled what
	// it got. It waits for up to [Worker.Wait] each time. Default no limit.
	Receives int
}

// holds reports whether Run is to end, after a number of answers of the source. The newest one had
// nothing, and nothing is in hand, or not.
func (u *Until) holds(receives int, nothing bool) bool {
	return u.Idle && nothing || u.Receives > 0 && receives >= u.Receives
}

func (c *Config) nameIt() {
	if c.Node == "" {
		if host, err := os.Hostname(); err == nil {
			c.Node = host
		}
	}
	if c.Name == "" {
		c.Name = c.Node + ":" + strconv.Itoa(os.Getpid())
	}
	if named, ok := c.Source.(interface{ Name() string }); ok && c.Queue == "" {
		c.Queue = named.Name()
	}
}

func (c *Config) check() error {
	if err := c.Breaker.Check(); err != nil {
		return err
	}
	switch {
	case c.Concurrency < 1 || c.Concurrency > nixie.MaxBatch:
		return nixie.Errorf(nixie.CodeInvalid, "concurrency is %d: give one from 1 to %d", c.Concurrency, nixie.MaxBatch)
	case c.Prefetch < c.Concurrency || c.Prefetch > nixie.MaxBatch:
		return nixie.Errorf(nixie.CodeInvalid,
			"prefetch is %d: give one from the concurrency, %d, to %d", c.Prefetch, c.Concurrency, nixie.MaxBatch)
	case c.Lease < nixie.MinLease || c.Lease > nixie.MaxLease:
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", c.Lease, nixie.MinLease, nixie.MaxLease)
	case c.longestLease() > 0 && c.Lease > c.longestLease():
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: its source allows %s at most; give a shorter one", c.Lease, c.longestLease())
	case c.Renewal.For < nixie.MinLease || c.Renewal.For > c.Lease:
		return nixie.Errorf(nixie.CodeInvalid, "renewal is for %s: give a time from %s to the lease, %s",
			c.Renewal.For, nixie.MinLease, c.Lease)
	case c.Renewal.Every < 0 || c.Renewal.Every > c.Renewal.For/renewParts:
		return nixie.Errorf(nixie.CodeInvalid, "renewal is every %s: give a positive time up to %s, a third of what a renewal is for",
			c.Renewal.Every, c.Renewal.For/renewParts)
	case c.ProgressLog != nil && !c.SettleEach:
		return nixie.Errorf(nixie.CodeInvalid, "recorder is set and SettleEach is not: set both or none")
	case c.Until.Receives < 0:
		return nixie.Errorf(nixie.CodeInvalid, "receives are %d: give a positive number, or 0 for no limit", c.Until.Receives)
	case c.HaltAfter < 0:
		return nixie.Errorf(nixie.CodeInvalid, "halt after is %s: give a positive duration, or 0 for never", c.HaltAfter)
	case c.HaltAfter > 0 && c.Breaker.Failures < 0:
		return nixie.Errorf(nixie.CodeInvalid, "halt after is %s and there is no breaker: leave one of both out", c.HaltAfter)
	case c.Timeout < 0 && c.Timeout != -1:
		return nixie.Errorf(nixie.CodeInvalid, "timeout is %s: give a positive one, 0 or −1 for none", c.Timeout)
	case c.Drain < 0 && c.Drain != -1:
		return nixie.Errorf(nixie.CodeInvalid, "drain is %s: give a positive one, 0 for %s or −1 for none", c.Drain, defaultDrain)
	}
	return nil
}

// longestLease returns the longest lease of the source; 0 is any.
func (c *Config) longestLease() time.Duration {
	if r, ok := c.Source.(lease.Renewer); ok {
		return r.MaxLease()
	}
	return 0
}
