package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// Mode says what becomes of an item that policy gives up on.
type Mode string

// The modes. A mode of "custom:" followed by a command asks that command.
const (
	ToOffice Mode = "dlq"     // buried; the default
	KeepOn   Mode = "retry"   // goes on past max_attempts, up to max_deliveries, then buried
	Discard  Mode = "discard" // dropped, counted and logged
	Stop     Mode = "stop"    // buried, and the job is halted
)

const customPrefix = "custom:"

// Until says when work on queues ends by itself.
type Until int8

// The ends of work.
const (
	Stopped Until = iota // not before it is told to
	Drained              // nothing is due or in hand: what is left is for later
	Empty                // nothing is left, and what is for later was waited for
)

// Config of a runner: of a job, which is run to its end, or of queues that are
// worked on.
type Config struct {
	Job       string               // name of the job's queue
	Queues    []string             // instead of a job: what to work on
	Until     Until                // of work on queues
	Steps     []command.Step       // what is run for each, one after the other until one fails
	Validate  *command.Step        // the last, once a workplace has checked what the others left; nil is none
	Parallel  int                  // commands at once, 1 to [MaxParallel]
	Timeout   time.Duration        // of one execution; 0 is none
	Lease     time.Duration        // of a claim; 0 is [nixie.DefaultLease]
	Policy    policy.Document      // over that of the queue
	OnFailure Mode                 // empty is [ToOffice]
	Breaker   *policy.BreakerRules // nil is that of the profile

	PermanentExit []int    // exit codes, 1 to 255, that mean: will never succeed
	Environ       []string // what the commands inherit
	StateFolder   string   // where running process groups are noted and verdicts are written
	Owner         string   // of the leases, as the store was told; unique among live processes

	// Workplace says where the commands of an attempt work. Nil: where this process does.
	// Without an error it may return nil for an attempt of which nothing is left to do.
	Workplace func(ctx context.Context, d *nixie.Delivery) (Workplace, error)

	// Show shows what a command printed and closes it. It is called by many goroutines
	// and returns when ctx ends. An error ends the run once its commands have finished.
	// Nil throws output away.
	Show func(ctx context.Context, p *Printed) error

	Mask     func(*nixie.Failure) // hides secrets in failures where they are made; nil hides nothing
	Clock    func() time.Time
	Warn     func(format string, args ...any) // something a person should know; the run goes on
	Observer *nixie.Observer
}

// Runner runs one job.
type Runner struct {
	c         Config
	store     store.Store
	steps     []step
	custom    custom                            // of mode custom
	exhausted nixie.Verb                        // that the mode asks for, if it does
	own       *rules                            // of queues that have no policy
	ruled     atomic.Pointer[map[string]*rules] // by queue, as last looked up
	env       command.Environment
	judge     *judge
	guard     *command.Guard
	verdicts  string // folder of those of this run's commands
	busy      inProgress
	printed   outputs
	trouble   trouble
	count     counters
	total     atomic.Int64
	recheck   chan struct{}   // ask the store whether anything is left
	cleared   map[string]bool // dead runs whose commands were ended; used by the receiving goroutine only

	mu      sync.Mutex
	w       *worker.Worker
	aborted bool
	halting error       // why the run ends by itself
	finish  func(error) // ends it
}

// MaxParallel is how many commands may run at once.
const MaxParallel = 1000

// MaxQueues is how many queues one runner may work on.
const MaxQueues = 100

// New checks a config. It touches no store and no file but to look for the
// programs. Errors are of [nixie.CodeInvalid].
func New(c Config) (*Runner, error) {
	if c.Lease == 0 {
		c.Lease = nixie.DefaultLease
	}
	if c.Job != "" {
		c.Queues, c.Until = []string{c.Job}, Empty
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Runner{c: c, env: command.NewEnvironment(c.Environ), recheck: make(chan struct{}, 1), cleared: map[string]bool{}}
	r.trouble.r = r
	var err error
	if r.steps, err = c.steps(); err != nil {
		return nil, err
	}
	if err := r.readMode(); err != nil {
		return nil, err
	}
	if r.exhausted != "" && len(r.c.Policy.Values("on-exhausted")) > 0 {
		return nil, nixie.Errorf(nixie.CodeInvalid, "on-exhausted and on-item-failure %s say two things of what is given up: give one", r.c.OnFailure)
	}
	if r.own, err = r.makeRules(""); err != nil {
		return nil, err
	}
	if err = r.readBreaker(); err != nil {
		return nil, err
	}
	r.judge = &judge{policy: r.policyOf, mode: r.c.OnFailure, mask: r.c.Mask, asked: map[nixie.ID]answer{}}
	return r, nil
}

// step is a command with the file of its program.
type step struct {
	command.Step
	path string
}

// steps are all that are run, the one that validates last.
func (c *Config) steps() (all []step, err error) {
	for _, s := range c.Steps {
		all = append(all, step{Step: s})
	}
	if c.Validate != nil {
		all = append(all, step{Step: *c.Validate})
	}
	for i := range all {
		if all[i].path, err = c.file(all[i].Program()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// file is that of a program. A relative path is one of the workplace, if there is one.
func (c *Config) file(name string) (string, error) {
	if c.Workplace != nil && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return name, nil
	}
	path, err := command.LookPath(name)
	if err != nil {
		return "", nixie.Errorf(nixie.CodeInvalid, "%w", err)
	}
	return path, nil
}

// Use gives the runner the store to work on. It is called once, before anything
// else is done.
func (r *Runner) Use(st store.Store) { r.store = st }

// readBreaker takes the breaker from the profile that the flags name, if they name none.
func (r *Runner) readBreaker() error {
	if r.c.Breaker != nil {
		return nil
	}
	profile, err := policy.ProfileNamed(r.own.policy.Config().Profile)
	r.c.Breaker = &profile.Breaker
	return err
}

func (c *Config) check() error {
	if err := nixie.CheckName("job", c.Job); err != nil {
		return err
	}
	for i, name := range c.Queues {
		if err := nixie.CheckName("queue", name); err != nil {
			return err
		}
		if name == "" || slices.Contains(c.Queues[:i], name) {
			return nixie.Errorf(nixie.CodeInvalid, "queue %q is empty or named twice: name each once", name)
		}
	}
	switch {
	case len(c.Queues) == 0 || len(c.Queues) > MaxQueues:
		return nixie.Errorf(nixie.CodeInvalid, "%d queues are named: name 1 to %d, or a job", len(c.Queues), MaxQueues)
	case c.Parallel < 1 || c.Parallel > MaxParallel:
		return nixie.Errorf(nixie.CodeInvalid, "parallel is %d: give one from 1 to %d", c.Parallel, MaxParallel)
	case c.Timeout < 0:
		return nixie.Errorf(nixie.CodeInvalid, "timeout is %s: give a positive duration, or 0 for none", c.Timeout)
	case c.Lease < nixie.MinLease || c.Lease > nixie.MaxLease:
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", c.Lease, nixie.MinLease, nixie.MaxLease)
	case len(c.Steps) == 0:
		return nixie.Errorf(nixie.CodeInvalid, "no command: give it after --, as in -- ./handle {id}")
	case c.Validate != nil && c.Workplace == nil:
		return nixie.Errorf(nixie.CodeInvalid, "validate needs a place of work of its own: that is for nixie map")
	}
	for _, code := range c.PermanentExit {
		if code < 1 || code > 255 {
			return nixie.Errorf(nixie.CodeInvalid, "permanent-exit holds %d: give exit codes from 1 to 255", code)
		}
	}
	return nil
}

// readMode checks the mode and puts into the policy what it can express.
func (r *Runner) readMode() (err error) {
	switch mode := r.c.OnFailure; mode {
	case "":
		r.c.OnFailure = ToOffice
	case ToOffice, KeepOn:
	case Discard:
		r.exhausted = nixie.Discard
	case Stop:
		r.exhausted = nixie.Halt
	default:
		rest, isCustom := strings.CutPrefix(string(mode), customPrefix)
		if !isCustom {
			return nixie.Errorf(nixie.CodeInvalid, "on-item-failure is %q: give dlq, retry, discard, stop or custom:COMMAND", mode)
		}
		r.custom, err = readCustom(rest)
	}
	return err
}

// DefaultJob is the name of the job of a list: its file's name, made unique by
// the place of the file.
func DefaultJob(absolutePath string) string {
	base := absolutePath[strings.LastIndexByte(absolutePath, '/')+1:]
	if dot := strings.LastIndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	base = strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f && !slices.Contains([]rune(`"'\:,`), c) {
			return c
		}
		return '-'
	}, base)
	hash := nixie.HashBody([]byte(absolutePath))
	return fmt.Sprintf("%.60s-%x", base, hash[:4])
}
