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
	Handler nixie.Handler // required but for a Desk

	// Policy of all that is received. Default: that of each queue, as its settings have
	// it, or profile nixie; what a worker receives 5 s after a change is decided by the
	// new one. It asks only when it receives something.
	Policy  *policy.Policy
	Decider policy.Decider // decides instead of Policy, which still diagnoses

	// Mask hides secrets in the texts of failures where they are made: before the
	// decision, the source and the observer. See package privacy; default none. A
	// Decider that makes texts of its own from errors masks them itself.
	Mask func(*nixie.Failure)

	Concurrency int           // handlers at once; default the number of processors; at most 10,000
	Prefetch    int           // most deliveries in hand; default 1000 or twice Concurrency, whichever is more; at most 10,000
	Lease       time.Duration // of each claim; default 30 s; see [nixie.MinLease]
	Timeout     time.Duration // of one attempt; default none
	Drain       time.Duration // how long handlers may go on once Run's context has ended; default 30 s, −1 not at all

	// Breaker pauses what fails in a row: one breaker for each message type and
	// reason of failure. While it is open nothing of that type is run and no attempt
	// is spent; see docs/policy.md. The zero value is none. A Desk has none.
	Breaker policy.BreakerRules

	// SettleEach lets a goroutine begin its next delivery only when its last one
	// is settled, so that a crash makes at most Concurrency deliveries run twice.
	SettleEach bool

	// ProgressLog, the store behind Source, makes that cheaper: with SettleEach it is
	// told the stages of deliveries, successes are not waited for but settled many
	// together, 50 ms later at most, and a crash costs nothing to what had not
	// begun. No more is in hand than takes 200 ms, or twice Concurrency.
	ProgressLog lease.ProgressLog

	Name     string           // shown as the worker in failures; default host:pid
	Node     string           // default the host's name
	Queue    string           // name for the observer; default the source's, if it has one
	Clock    func() time.Time // for deadlines, leases and records; default time.Now; pauses and ticks are real time
	Observer *nixie.Observer

	// Logger gets what a person has to know: deaths at warn, one line for those of a
	// kind that are settled together; lost leases, outcomes that came too late and a
	// source that fails at error, once when it begins and once, at info, when it is
	// over. Texts of failures are the masked ones, cut at 500 bytes; bodies, headers and
	// keys are in no line. Default [slog.Default]; [slog.DiscardHandler] makes it silent.
	Logger *slog.Logger

	journal *journal
	rules   *policies
}

// Limits of the loop.
const (
	defaultPrefetch = 1000
	defaultDrain    = 30 * time.Second
	stuckAfter      = 5 * time.Second        // how long Run waits for whoever ignores the end of its context
	lastSettling    = 30 * time.Second       // how long outcomes are repeated once the last handler has returned
	callLimit       = 30 * time.Second       // how long the source may take for one call, beside its waiting
	pollWait        = time.Second            // how long one receive may wait for work
	idleGap         = 10 * time.Millisecond  // from one receive to the next when the source has nothing and does not wait
	firstPause      = 100 * time.Millisecond // after a call that failed; doubled each time
	maxPause        = 5 * time.Second        // up to this
	hurry           = 10                     // at most a tenth of a lease is spent on a pause or on waiting for work
	watchParts      = 50                     // the end of a timeout or lease is noticed late by a fiftieth of it at most,
	watchLeast      = 10 * time.Millisecond  // but not looked for more often than this
	watchMost       = 250 * time.Millisecond // nor more seldom than this
	settleRest      = 50 * time.Millisecond  // recorded successes gather for as long
	recordAhead     = 200 * time.Millisecond // and so much work is received ahead
	renewParts      = 3                      // leases are renewed at every third of their length
	margin          = 5                      // a handler's context ends a fifth of a lease before the lease can
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
	if c.Drain == 0 {
		c.Drain = defaultDrain
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the default
	}
	var err error
	if c.rules, err = newPolicies(&c); err != nil {
		return c, err
	}
	if c.Decider == nil {
		c.Decider = c.rules
	}
	c.nameIt()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.journal = newJournal(c.Logger, c.Queue, c.Clock)
	return c, c.check()
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
		return nixie.Errorf(nixie.CodeInvalid, "prefetch is %d: give one from the concurrency, %d, to %d", c.Prefetch, c.Concurrency, nixie.MaxBatch)
	case c.Lease < nixie.MinLease || c.Lease > nixie.MaxLease:
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", c.Lease, nixie.MinLease, nixie.MaxLease)
	case c.ProgressLog != nil && !c.SettleEach:
		return nixie.Errorf(nixie.CodeInvalid, "recorder is set and SettleEach is not: set both or none")
	case c.Timeout < 0 && c.Timeout != -1:
		return nixie.Errorf(nixie.CodeInvalid, "timeout is %s: give a positive one, 0 or −1 for none", c.Timeout)
	case c.Drain < 0 && c.Drain != -1:
		return nixie.Errorf(nixie.CodeInvalid, "drain is %s: give a positive one, 0 for %s or −1 for none", c.Drain, defaultDrain)
	}
	return nil
}
