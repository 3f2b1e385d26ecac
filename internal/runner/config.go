package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
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

// Config of a runner.
type Config struct {
	Store     store.Store
	Job       string // name of the queue
	Items     items.Options
	Command   []string // program and arguments with placeholders
	Parallel  int      // commands at once
	Timeout   time.Duration
	Lease     time.Duration
	Policy    policy.Config
	OnFailure Mode

	PermanentExit []int    // exit codes that mean: will never succeed
	Environ       []string // what the commands inherit
	StateFolder   string   // where running process groups are noted
	Owner         string   // of the leases, as the store was told; unique among live processes
	VerdictFolder string   // where commands may write verdicts; emptied by the caller

	Clock    func() time.Time
	Warn     func(format string, args ...any) // something a person should know; the run goes on
	Observer *nixie.Observer
}

// Runner runs one job.
type Runner struct {
	c        Config
	template command.Template
	path     string   // of the program
	custom   []string // of mode custom
	policy   *policy.Policy
	env      command.Environment
	judge    *judge
	guard    *command.Guard
	count    counters
	total    atomic.Int64
	recheck  chan struct{}   // ask the store whether anything is left
	cleared  map[string]bool // dead runs whose commands were ended; used by the receiving goroutine only

	mu      sync.Mutex
	w       *worker.Worker
	halting error       // why the run ends by itself
	finish  func(error) // ends it
}

// New checks a config. Errors are of [nixie.CodeInvalid].
func New(c Config) (*Runner, error) {
	if err := nixie.CheckName("job", c.Job); err != nil {
		return nil, err
	}
	if c.Parallel < 1 || c.Parallel > maxParallel {
		return nil, nixie.Errorf(nixie.CodeInvalid, "parallel is %d: give one from 1 to %d", c.Parallel, maxParallel)
	}
	if len(c.Command) == 0 {
		return nil, nixie.Errorf(nixie.CodeInvalid, "no command: give it after --, as in nixie run items.jsonl -- ./handle {id}")
	}
	r := &Runner{c: c, env: command.NewEnvironment(c.Environ), recheck: make(chan struct{}, 1), cleared: map[string]bool{}}
	var err error
	if r.template, err = command.ParseTemplate(c.Command); err != nil {
		return nil, err
	}
	if r.path, err = command.LookPath(c.Command[0]); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "command cannot be run: %w", err)
	}
	if err := r.readMode(); err != nil {
		return nil, err
	}
	if r.policy, err = policy.New(r.c.Policy); err != nil {
		return nil, err
	}
	r.judge = &judge{Policy: r.policy, mode: c.OnFailure, asked: map[nixie.ID]answer{}}
	return r, nil
}

const maxParallel = 1000

// readMode checks the mode and puts into the policy what it can express.
func (r *Runner) readMode() error {
	switch mode := r.c.OnFailure; mode {
	case "":
		r.c.OnFailure = ToOffice
	case ToOffice, KeepOn:
	case Discard:
		r.c.Policy.OnExhausted = nixie.Discard
	case Stop:
		r.c.Policy.OnExhausted = nixie.Halt
	default:
		rest, isCustom := strings.CutPrefix(string(mode), customPrefix)
		if !isCustom {
			return nixie.Errorf(nixie.CodeInvalid, "on-item-failure is %q: give dlq, retry, discard, stop or custom:COMMAND", mode)
		}
		r.custom = strings.Fields(rest)
		if len(r.custom) == 0 {
			return nixie.Errorf(nixie.CodeInvalid, "on-item-failure is custom without a command: give custom:COMMAND")
		}
		if _, err := command.LookPath(r.custom[0]); err != nil {
			return nixie.Errorf(nixie.CodeInvalid, "custom command cannot be run: %w", err)
		}
	}
	return nil
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
