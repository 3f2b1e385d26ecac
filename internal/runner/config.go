package runner

import (
	"context"
	"encoding/json"
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

// Mode decides about an item that the policy gives up on.
type Mode string

// The modes. A mode of "custom:" followed by a command asks that command.
const (
	ToOffice Mode = "dlq"     // buried; the default
	KeepOn   Mode = "retry"   // retried past max_attempts, up to max_deliveries, then buried
	Discard  Mode = "discard" // dropped, counted and logged
	Stop     Mode = "stop"    // buried, and the job is halted
)

const customPrefix = "custom:"

// Until names the state of the queues in which the work ends by itself.
type Until int8

// The ends of work.
const (
	Stopped Until = iota // never: a caller ends it
	Drained              // no message is due or leased; scheduled ones may be left
	Empty                // no message is left; the work waits for scheduled ones
)

// Config configures a runner: of a job, which it runs to its end, or of queues.
type Config struct {
	Job       string              // name of the job's queue
	Queues    []string            // to work on, instead of a job
	Until     Until               // of work on queues
	Steps     []command.Step      // run for each item, one after the other until one fails
	Env       []command.Field     // variables of all steps, before those that commands inherit
	Whole     time.Duration       // of all steps of an attempt in a workplace; 0 means no limit
	Validate  *command.Step       // the last step, after the workplace has checked the others' work; nil means none
	Parallel  int                 // commands at the same time, 1 to [MaxParallel]
	Timeout   time.Duration       // of one execution; 0 means none
	Lease     time.Duration       // of a claim; 0 means [nixie.DefaultLease]
	Policy    policy.Document     // overrides that of the queue
	OnFailure Mode                // empty means [ToOffice]
	Breaker   policy.BreakerRules // zero means that of the profile
	StopAfter StopAfter           // of a job
	HaltAfter time.Duration       // ends work of which nothing succeeds; see [worker.Config]

	PermanentExit []int    // exit codes, 1 to 255, that mean: will never succeed
	Environ       []string // the environment that commands inherit
	StateFolder   string   // of the notes of running process groups, of verdicts and of agents' logs
	Owner         string   // of the leases, as the store has it; unique among live processes

	// Workplace makes the workplace of an attempt. Nil runs commands in the folder of this process.
	// It may return nil without an error for an item that is done already.
	Workplace func(ctx context.Context, d *nixie.Delivery) (Workplace, error)

	// Values returns what steps of a workflow file know before they begin, by name; nil knows
	// nothing more. Keep gets what the steps of an attempt made known, once all have succeeded and
	// before their work is merged; what it does is done again after a crash.
	Values func(ctx context.Context, d *nixie.Delivery) (map[string]json.RawMessage, error)
	Keep   func(ctx context.Context, d *nixie.Delivery, made map[string]json.RawMessage) error

	// Show shows the output of a command and closes it. Many goroutines call it; it returns when
	// ctx ends. An error ends the run after its commands have finished. Nil throws output away.
	Show func(ctx context.Context, p *Printed) error

	Answers Answers // to messages that want one; work on a job ignores them

	// Watchdog ends this process with SIGKILL when its worker has not gone on for so long: not when
	// a command takes long. Before that it says so by Warn, and writes the stacks of all goroutines
	// to standard error. 0 is never.
	Watchdog time.Duration

	Mask     func(*nixie.Failure) // hides secrets in failures where they are made; nil hides nothing
	Clock    func() time.Time
	Warn     func(format string, args ...any) // tells a person a problem; the run goes on
	Observer *nixie.Observer
	Wrap     func(nixie.Handler) nixie.Handler // of the handler; nil does not wrap it
}

// Runner runs one job.
type Runner struct {
	c         Config
	store     store.Store
	headers   []nixie.Header // of new items
	steps     []step
	custom    custom                            // of mode custom
	exhausted nixie.Verb                        // of the mode, if it has one
	defaults  *rules                            // of queues that have no policy
	byQueue   atomic.Pointer[map[string]*rules] // as last read from the store
	env       command.Environment
	decider   *decider
	guard     *command.Guard
	source    nixie.Source // of the worker
	verdicts  string       // folder of the verdicts of this run's commands
	logs      bool         // a step has a log
	busy      inProgress
	printed   outputs
	outage    outage
	count     counters
	total     atomic.Int64
	recount   chan struct{}   // wakes watchQueues to ask the store whether anything is left
	ended     map[string]bool // dead runs whose commands were ended; only the receiving goroutine uses it
	heard     pulse
	leftOut   sync.Once // tells that fields do not fit

	mu      sync.Mutex
	w       *worker.Worker
	working context.Context // ends when no more attempts should begin
	aborted bool
	halting error       // the reason why the run ends by itself
	finish  func(error) // ends it
}

// MaxParallel limits the commands that run at the same time.
const MaxParallel = 1000

// MaxQueues limits the queues of one runner.
const MaxQueues = 100

// New checks a config. It touches no store, and no file except to find the programs. Errors are of
// [nixie.CodeInvalid].
func New(c Config) (*Runner, error) {
	if c.Lease == 0 {
		c.Lease = nixie.DefaultLease
	}
	if c.Job != "" {
		c.Queues, c.Until, c.Answers = []string{c.Job}, Empty, Answers{Ignore: true}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Runner{c: c, env: command.NewEnvironment(c.Environ), recount: make(chan struct{}, 1), ended: map[string]bool{}}
	r.outage.r, r.heard.clock = r, c.Clock
	var err error
	if r.steps, err = c.steps(); err != nil {
		return nil, err
	}
	r.logs = slices.ContainsFunc(r.steps, func(s step) bool { return s.Logs })
	if err := r.readMode(); err != nil {
		return nil, err
	}
	if r.exhausted != "" && len(r.c.Policy.Values("on-exhausted")) > 0 {
		return nil, nixie.Errorf(nixie.CodeInvalid,
			"on-exhausted and on-item-failure %s both decide about items that are given up: give one",
			r.c.OnFailure)
	}
	if r.defaults, err = r.makeRules(""); err != nil {
		return nil, err
	}
	r.decider = &decider{policy: r.policyOf, mode: r.c.OnFailure, mask: r.c.Mask, tell: r.tellSender, answers: map[nixie.ID]answer{}}
	return r, nil
}

// step is a command with the file of its program.
type step struct {
	command.Step
	file string
	crew *crew // of a persistent step, while the runner runs

	after, handler, measure, complete []step // of a step of a file
}

// steps returns all steps; the validating one is last.
func (c *Config) steps() ([]step, error) {
	all, err := c.stepsOf(c.Steps)
	if err != nil || c.Validate == nil {
		return all, err
	}
	if c.Validate.Commits {
		return nil, cannotCommit(c.Validate)
	}
	last, err := c.stepsOf([]command.Step{*c.Validate})
	return append(all, last...), err
}

func cannotCommit(s *command.Step) error {
	return nixie.Errorf(nixie.CodeInvalid, "step %q has to commit, which only a --step of nixie map run can", s.Label)
}

// stepsOf finds the programs of steps, and of the steps within them.
func (c *Config) stepsOf(given []command.Step) (all []step, err error) {
	for _, s := range given {
		made := step{Step: s}
		if s.Commits && c.Workplace == nil {
			return nil, cannotCommit(&s)
		}
		if err = checkPersistent(&s); err != nil {
			return nil, err
		}
		if made.file, err = c.programFile(&s); err != nil {
			return nil, err
		}
		if s.Flow != nil {
			if err = c.stepsWithin(&made); err != nil {
				return nil, err
			}
		}
		all = append(all, made)
	}
	return all, nil
}

// stepsWithin finds the programs of the steps within a step of a file.
func (c *Config) stepsWithin(s *step) (err error) {
	if c.Workplace == nil {
		return nixie.Errorf(nixie.CodeInvalid, "step %q is of a workflow file, which needs a worktree for each attempt: use nixie map",
			s.Label)
	}
	if s.after, err = c.stepsOf(s.OnSuccess); err != nil {
		return err
	}
	if s.OnFailure != nil {
		if s.handler, err = c.stepsOf(s.OnFailure.Steps); err != nil {
			return err
		}
	}
	if s.Flow.Validate == nil {
		return nil
	}
	if s.measure, err = c.stepsOf(s.Flow.Validate.Steps); err != nil || s.Flow.Validate.OnIncomplete == nil {
		return err
	}
	s.complete, err = c.stepsOf(s.Flow.Validate.OnIncomplete.Steps)
	return err
}

// checkPersistent refuses what only a command for each item can have.
func checkPersistent(s *command.Step) error {
	switch {
	case !s.Persistent:
	case s.Logs:
		return nixie.Errorf(nixie.CodeInvalid, "step %q is persistent, and an agent has a log file for each attempt: "+
			"write exec instead of agent; what it writes to standard error is kept with a failure", s.Label)
	case len(s.Paths()) > 0:
		field := s.Paths()[0]
		return nixie.Errorf(nixie.CodeInvalid, "the command has {%s}, and a persistent one gets each message as a line: "+
			"leave it out, or write {{%s}} for the text", field, field)
	}
	return nil
}

// programFile finds the file of a program. A relative path is below the workplace, if there is one.
// A process that stays is in none.
func (c *Config) programFile(s *command.Step) (string, error) {
	name := s.Program()
	if c.Workplace != nil && !s.Persistent && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return name, nil
	}
	path, err := command.LookPath(name)
	if err != nil {
		return "", nixie.Errorf(nixie.CodeInvalid, "%w", err)
	}
	return path, nil
}

// Use gives the runner its store. It is called once, before all other methods.
func (r *Runner) Use(st store.Store) { r.store = st }

// WorkOn gives the job another queue, before Intake and Resume. New items get the headers.
func (r *Runner) WorkOn(queue string, headers []nixie.Header) error {
	r.c.Job, r.c.Queues, r.headers = queue, []string{queue}, headers
	return nixie.CheckName("job", queue)
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
	case c.Watchdog < 0:
		return nixie.Errorf(nixie.CodeInvalid, "watchdog is %s: give a positive duration, or 0 for none", c.Watchdog)
	case c.Timeout < 0:
		return nixie.Errorf(nixie.CodeInvalid, "timeout is %s: give a positive duration, or 0 for none", c.Timeout)
	case c.Lease < nixie.MinLease || c.Lease > nixie.MaxLease:
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", c.Lease, nixie.MinLease, nixie.MaxLease)
	case len(c.Steps) == 0:
		return nixie.Errorf(nixie.CodeInvalid, "no command: give it after --, as in -- ./handle {id}")
	case c.Validate != nil && c.Workplace == nil:
		return nixie.Errorf(nixie.CodeInvalid, "validate needs a worktree for each attempt: use nixie map")
	}
	for _, code := range c.PermanentExit {
		if code < 1 || code > 255 {
			return nixie.Errorf(nixie.CodeInvalid, "permanent-exit holds %d: give exit codes from 1 to 255", code)
		}
	}
	return nil
}

// readMode checks the mode. Discard and stop become verbs of the policy.
func (r *Runner) readMode() (err error) {
	switch mode := r.c.OnFailure; mode {
	case "":
		r.c.OnFailure = ToOffice
	case ToOffice, KeepOn:
	case Discard, "skip": // as workflow files have it
		r.c.OnFailure, r.exhausted = Discard, nixie.Discard
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

// DefaultJob names the job of a list after its file, and makes it unique by a hash of the path.
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
