package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// Loop is a member of a [Group]. [MainLoop] and [DeadLetterConsumer] are loops. One of your own
// calls [Beat] with the context of Run at least every [MaxWait], and may have the methods
//
//	Name() string  for logs
//	Abort()        ends at once what Run, whose context has ended, still lets finish
type Loop interface {
	Run(ctx context.Context) error
}

// GroupConfig configures a [Group]. Zero fields mean their default. Durations are up to 12 h.
type GroupConfig struct {
	Loops []Loop // required; at most [MaxLoops]

	// Health takes requests for /health/live and /health/ready; see [Group].Health. Default none.
	// Run closes it.
	Health net.Listener

	// Checks are asked at each request for /health/ready, at the same time; at most [MaxChecks].
	Checks []Check

	// Watchdog ends the process with SIGKILL when a loop is silent for longer than Threshold, so
	// that what starts processes starts it again. It looks every Interval, logs what is stuck
	// at [LevelCritical] and writes the stacks of all goroutines to Dump. Default off.
	Watchdog  bool
	Threshold time.Duration // default [DefaultThreshold]; more than Longest and the wait for work
	Interval  time.Duration // default [DefaultInterval]; less than a third of Threshold
	Dump      io.Writer     // default [os.Stderr]

	// Longest bounds the time of an item from one [Beat] to the next. One that takes longer makes
	// the group unready, and its visibility is not extended any more. Default [DefaultLongest].
	Longest time.Duration

	// While a handler beats, the visibility of its message is extended every ExtendEvery, so that
	// it does not end within ExtendFor. A loop whose lease is not longer than ExtendFor extends it
	// after each third of it. Defaults [DefaultExtendEvery] and [DefaultExtendFor].
	ExtendEvery, ExtendFor time.Duration

	// Grace lets handlers go on for a while when the group stops; see [Group].Run. A loop whose
	// worker has a Drain of its own has that, if it is shorter. Default [DefaultGrace], −1 none.
	Grace time.Duration

	Clock  func() time.Time // default time.Now; ticks are real time
	Logger *slog.Logger     // default [slog.Default]
}

// Defaults and limits of a group.
const (
	DefaultThreshold   = 720 * time.Second
	DefaultInterval    = 60 * time.Second
	DefaultLongest     = 300 * time.Second
	DefaultExtendEvery = 60 * time.Second
	DefaultExtendFor   = 300 * time.Second
	DefaultGrace       = 30 * time.Second
	MaxLoops           = 1000
)

// member is a loop with its pulse.
type member struct {
	Loop
	*pulse
	mayRest time.Duration // longest silence of a loop that is well
}

// Group runs loops together. It tells others whether they are well, and ends the process if they
// are stuck. Make one with NewGroup, and call Run once.
type Group struct {
	c       GroupConfig
	members []member
	ran     atomic.Bool
	abort   sync.Once
	aborted chan struct{}
	checks  []*checking
	kill    func() // ends the process; nil is SIGKILL
}

// NewGroup checks a config and makes a group of its loops, which must not run yet. Errors are
// [ErrInvalidParameter]; those about sizes name the least value that fits.
func NewGroup(c GroupConfig) (*Group, error) {
	if len(c.Loops) == 0 || len(c.Loops) > MaxLoops {
		return nil, invalid("group has %d loops: give 1 to %d", len(c.Loops), MaxLoops)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	g := &Group{c: c, aborted: make(chan struct{})}
	var err error
	if g.checks, err = checkings(c.Checks); err != nil {
		return nil, err
	}
	var longer []string // loops with a raised visibility
	for i, l := range c.Loops {
		if l == nil {
			return nil, invalid("loop %d of the group is nil: leave it out", i)
		}
		name := fmt.Sprintf("loop-%d", i)
		if named, ok := l.(interface{ Name() string }); ok {
			name = named.Name()
		}
		m := member{l, newPulse(name, c.Clock), MaxWait + c.Longest}
		e, ours := l.(joiner)
		if ours {
			if raised, err := c.raise(e); err != nil {
				return nil, err
			} else if raised {
				longer = append(longer, name)
			}
			m.mayRest = e.wait() + c.Longest
		}
		if err := c.fits(&m, e); err != nil {
			return nil, err
		}
		g.members = append(g.members, m)
	}
	if len(longer) > 0 {
		c.Logger.Info("the visibility of loops is raised, because the watchdog has to end a stuck process before others get its messages; "+
			"after a crash, messages of a broker that sees only time come again when their visibility is over",
			"loops", longer, "visibility", c.fitting())
	}
	for _, m := range g.members {
		if e, ok := m.Loop.(joiner); ok {
			if err := e.join(&g.c, m.pulse); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

// joiner is a loop of this package: an [engine].
type joiner interface {
	join(c *GroupConfig, p *pulse) error
	lease() (lease time.Duration, chosen bool)
	raise(lease time.Duration) error
	wait() time.Duration
}

// spareLease is added to the least that fits.
const spareLease = time.Minute

// fitting returns the lease of loops whose configs give none, for a group with a watchdog.
func (c *GroupConfig) fitting() time.Duration { return c.Threshold + c.Longest + spareLease }

// raise raises the lease of a loop, if its config gives none and the default is too short.
func (c *GroupConfig) raise(e joiner) (raised bool, err error) {
	lease, chosen := e.lease()
	if !c.Watchdog || chosen || lease > c.Threshold+c.Longest {
		return false, nil
	}
	return true, e.raise(c.fitting())
}

// complete sets defaults and checks what concerns the group alone.
func (c *GroupConfig) complete() error {
	switch c.Grace {
	case -1:
		c.Grace = 0
	case 0:
		c.Grace = DefaultGrace
	}
	for _, o := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{
		{"threshold", &c.Threshold, DefaultThreshold},
		{"interval", &c.Interval, DefaultInterval},
		{"longest processing", &c.Longest, DefaultLongest},
		{"interval of extensions", &c.ExtendEvery, DefaultExtendEvery},
		{"extension", &c.ExtendFor, DefaultExtendFor},
		{"grace", &c.Grace, 0},
	} {
		if *o.value < 0 || *o.value > MaxVisibility {
			return invalid("%s of the group is %s: give a positive one up to %s, or 0 for the default", o.name, *o.value, MaxVisibility)
		}
		if *o.value == 0 {
			*o.value = o.usual
		}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Dump == nil {
		c.Dump = os.Stderr
	}
	switch {
	case c.ExtendFor < MinVisibility:
		return invalid("extension is %s: give %s or more", c.ExtendFor, MinVisibility)
	case c.ExtendEvery > c.ExtendFor/extendParts:
		return invalid("extensions for %s come every %s: extend for %s or more, or more often", c.ExtendFor, c.ExtendEvery,
			extendParts*c.ExtendEvery)
	case c.Watchdog && 3*c.Interval >= c.Threshold:
		return invalid("watchdog looks every %s for loops that are silent for %s: give a threshold of more than %s, or a shorter interval",
			c.Interval, c.Threshold, 3*c.Interval)
	}
	return nil
}

// A visibility is extended after a third of it at the latest.
const extendParts = 3

// fits checks the sizes of a loop, and of its engine if it has one, against those of the group.
func (c *GroupConfig) fits(m *member, e joiner) error {
	if c.Threshold <= m.mayRest {
		return invalid("threshold is %s, and loop %s may be silent for %s: it waits for work for %s, and an item may take %s; "+
			"give a threshold of more than %s", c.Threshold, m.name, m.mayRest, m.mayRest-c.Longest, c.Longest, m.mayRest)
	}
	if !c.Watchdog || e == nil {
		return nil
	}
	if lease, _ := e.lease(); lease <= c.Threshold+c.Longest {
		return invalid("visibility of loop %s is %s: others would get its messages before the watchdog ends the process; "+
			"give its worker a lease of more than %s, or none", m.name, lease, c.Threshold+c.Longest)
	}
	return nil
}

// Run runs the loops until ctx ends and nothing is left in hand. When ctx ends, the group
//
//  1. stops to receive; what no handler has begun is released, all of it,
//  2. lets handlers finish for Grace, or until Abort,
//  3. ends the contexts of the others, and releases their messages.
//
// A loop that ends early makes the group unready, and the others go on. Run returns the errors of
// the loops, and nil if there are none.
func (g *Group) Run(ctx context.Context) error {
	if g.ran.Swap(true) {
		return fail(ErrInvalidParameter, nixie.CodeConflict, "group has been run already: make a new one with NewGroup")
	}
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keepers, loops sync.WaitGroup
	defer keepers.Wait()
	defer stopKeeping()
	if g.c.Health != nil {
		keepers.Go(func() { g.serve(keeping) })
	}
	if g.c.Watchdog {
		keepers.Go(func() { g.watch(keeping) })
	}
	errs := make([]error, len(g.members))
	for i, m := range g.members {
		m.is(running)
		loops.Go(func() { errs[i] = g.runOne(ctx, m) })
	}
	over := make(chan struct{})
	go func() { loops.Wait(); close(over) }() // a loop that is stuck keeps it
	select {
	case <-over:
	case <-ctx.Done():
		for _, m := range g.members {
			m.is(stopping)
		}
		if !g.stop(over) {
			return worker.ErrStuck
		}
	}
	return errors.Join(errs...)
}

// endsWithin bounds how long Run waits for loops after it has aborted them. Those of this package
// end earlier.
const endsWithin = 2 * time.Minute

// stop waits for the loops, whose context has ended, and aborts them after the grace. It reports
// whether all have ended.
func (g *Group) stop(over <-chan struct{}) bool {
	patience := time.NewTimer(g.c.Grace)
	defer patience.Stop()
	select {
	case <-over:
		return true
	case <-patience.C:
	case <-g.aborted:
	}
	for _, m := range g.members {
		if a, ok := m.Loop.(interface{ Abort() }); ok {
			a.Abort()
		}
	}
	patience.Reset(endsWithin)
	select {
	case <-over:
		return true
	case <-patience.C:
		return false
	}
}

// runOne runs one loop. A panic of it is its error.
func (g *Group) runOne(ctx context.Context, m member) error {
	defer m.is(ended)
	_, err := try(func() (struct{}, error) { return struct{}{}, m.Run(context.WithValue(ctx, signKey{}, &m.own)) })
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	case ctx.Err() == nil:
		g.c.Logger.Error("a loop of the group has ended, the others go on", "loop", m.name, "error", err.Error())
	}
	return fmt.Errorf("loop %s: %w", m.name, err)
}

// Abort ends the grace: handlers that run after the context of Run has ended are ended at once.
func (g *Group) Abort() { g.abort.Do(func() { close(g.aborted) }) }

// RunUntilSignal calls Run with a context that ends at an interrupt or SIGTERM as well. Another one
// after the end of the context calls Abort.
func (g *Group) RunUntilSignal(ctx context.Context) error {
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-heard:
			stop()
		case <-ctx.Done():
		case <-over:
			return
		}
		select {
		case <-heard:
			g.Abort()
		case <-over:
		}
	})
	err := g.Run(ctx)
	close(over)
	watching.Wait()
	stop()
	signal.Stop(heard)
	return err
}
