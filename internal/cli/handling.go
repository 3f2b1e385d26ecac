package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
)

// handling holds the flags of commands that run a command for each of many: how many at once, how
// long, how often, and what happens to failures.
type handling struct {
	*globals
	telemetryFlags
	onFailure      string
	policy         policyFlags
	breaker        string
	halt           time.Duration
	endless        string // the flag that would let the work end by itself; empty: it does
	mask           maskFlags
	printing       outputFlags
	printer        *printer // nil: the output of commands is not shown
	parallel       int
	timeout, lease time.Duration
	grace          time.Duration // of commands at a stop; −1: until they end
	watchdog       time.Duration
	permanentExit  []int
	reply, noReply bool
	persistent     bool
	processors     sync.Once // more of them are there for waiting threads
}

// command completes a command that runs others. Do gets the number of arguments before "--", or -1.
func (h *handling) command(cmd *cobra.Command, do func(ctx context.Context, args []string, dash int) error) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := command.Supported(); err != nil {
			return err
		}
		err := do(cmd.Context(), args, cmd.ArgsLenAtDash())
		h.finish()
		return h.interrupted(cmd.Context(), err)
	}
	return cmd
}

// registerCommand adds the flags about one execution of the command.
func (h *handling) registerCommand(fs *pflag.FlagSet) {
	fs.IntVarP(&h.parallel, "parallel", "p", runtime.NumCPU(), "commands at once")
	alias(fs, "parallel", "jobs", "j")
	durationVar(fs, &h.timeout, "timeout", 0, "limit of one execution; 0 is none")
	fs.IntSliceVar(&h.permanentExit, "permanent-exit", nil, "exit codes after which an item is not retried")
	h.mask.register(fs)
	h.printing.register(fs)
}

// register adds the flags. Otherwise names the policy that applies where no flag is given.
func (h *handling) register(fs *pflag.FlagSet, otherwise string) {
	h.registerCommand(fs)
	h.policy.register(fs, otherwise)
	fs.StringVar(&h.breaker, "breaker", "", "pause when commands fail in a row for any reason: "+
		"5,3,30s,3 for failures, successes, open_for and half_open_max; default: for one that time may heal; or none "+
		"(default that of the profile)")
	durationVar(fs, &h.halt, "halt-after", defaultHalt,
		"end with code 7 when nothing has succeeded and the breaker has been open for so long; 0 is never")
	fs.StringVar(&h.onFailure, "on-item-failure", string(runner.ToOffice),
		"what happens to an item that is given up: dlq, retry, discard, stop or custom:COMMAND")
	h.telemetryFlags.register(fs)
	durationVar(fs, &h.lease, "lease", nixie.DefaultLease, "how long an item is held without a heartbeat")
	durationVar(fs, &h.grace, "grace", defaultGrace, "how long commands may go on after SIGTERM or SIGHUP; "+
		"then they get TERM, 2s later KILL, and their messages go back at no cost; 0 is TERM at once")
	durationVar(fs, &h.watchdog, "watchdog", loop.DefaultThreshold,
		"end this process with SIGKILL when it has been stuck for so long; a command may take longer; 0 is never")
}

// registerPersistent adds the flag of commands that may stay.
func (h *handling) registerPersistent(fs *pflag.FlagSet) {
	fs.BoolVar(&h.persistent, "persistent", false, "start COMMAND once for each of --parallel, and give it messages as lines of JSON")
}

// registerReply adds the flags about messages that want an answer.
func (h *handling) registerReply(fs *pflag.FlagSet) {
	fs.BoolVar(&h.reply, "reply", false,
		"answer who asked with what the command prints or writes to $NIXIE_RESULT_FILE, and with an error when the message dies")
	fs.BoolVar(&h.noReply, "no-reply", false, "run commands also for messages that want an answer, and send none")
}

// answers reads the flags of registerReply. Letters names a channel that takes no answers.
func (h *handling) answers(letters string) (a runner.Answers, err error) {
	switch {
	case h.reply && h.noReply:
		err = usagef("--reply and --no-reply contradict each other: give one of them")
	case h.reply:
		a.Make = func(d *nixie.Delivery, body []byte, failed string) (nixie.Message, error) {
			if to := d.Header(loop.HeaderReplyTo); to == letters {
				return nixie.Message{}, nixie.Errorf(nixie.CodeInvalid, "mailbox %s for the answer takes letters: name another one", to)
			}
			return h.answerTo(d, body, failed)
		}
	}
	a.Ignore = h.noReply
	return a, err
}

// headerReplyError marks an answer that tells of a death: dead-lettered or rejected.
const headerReplyError = "reply-error"

// answerTo makes an answer: the body as it is, or the error of a death as loops send it.
func (h *handling) answerTo(d *nixie.Delivery, body []byte, failed string) (nixie.Message, error) {
	id := cmp.Or(d.Header(nixie.HeaderRequestID), loop.IDOf(d).String())
	opts := []nixie.Option{nixie.WithHeader(nixie.HeaderRequestID, id)}
	if failed != "" {
		how, _, _ := strings.Cut(failed, " ")
		opts = append(opts, nixie.WithHeader(headerReplyError, strings.ToLower(how)))
		run := loop.RunContext{RequestID: id, Attempt: d.Attempts + d.Crashes}
		var err error
		body, err = json.Marshal(loop.Result[any]{RequestID: id, Error: failed, RunContext: run, CompletedAt: h.Now().UTC()})
		if err != nil {
			return nixie.Message{}, err
		}
	}
	to, err := loop.NewOutlet[[]byte](nil, d.Header(loop.HeaderReplyTo), rawCodec{})
	if err != nil {
		return nixie.Message{}, err
	}
	return to.Message(body, opts...)
}

// defaultGrace leaves 5 s of the 30 s that most platforms wait before SIGKILL.
const defaultGrace = 25 * time.Second

// leastWatchdog is longer than a call of the store may take.
const leastWatchdog = time.Minute

// config reads the flags; the caller adds the queues or the job.
func (h *handling) config(ctx context.Context, cmd []string) (*runner.Config, error) {
	if h.grace < 0 {
		return nil, usagef("--grace is %s: give a time from 0 on; 0 ends commands at once", h.grace)
	}
	if h.watchdog != 0 && h.watchdog < leastWatchdog {
		return nil, usagef("--watchdog is %s: give %s or more, or 0 for never", h.watchdog, leastWatchdog)
	}
	rules, err := h.policy.document()
	if err != nil {
		return nil, err
	}
	cfg, err := h.commandConfig(cmd)
	if err != nil {
		return nil, err
	}
	if h.breaker != "" {
		if cfg.Breaker, err = policy.ParseBreaker(h.breaker); err != nil {
			return nil, err
		}
	}
	if cfg.HaltAfter, err = h.haltAfter(cfg.Breaker); err != nil {
		return nil, err
	}
	if err := h.begin(ctx, h.globals); err != nil {
		return nil, err
	}
	cfg.Observer, cfg.Wrap = nixie.Tee(h.told.Observer(), &nixie.Observer{Connected: h.connected}), h.told.Handler
	cfg.Lease, cfg.Watchdog, cfg.Policy, cfg.OnFailure = h.lease, h.watchdog, rules, runner.Mode(h.onFailure)
	return cfg, nil
}

// commandConfig reads the flags of registerCommand.
func (h *handling) commandConfig(cmd []string) (*runner.Config, error) {
	mask, err := h.mask.mask(h.Env)
	if err != nil {
		return nil, err
	}
	if h.printer, err = h.printing.printer(h.globals, mask); err != nil {
		return nil, err
	}
	cfg := &runner.Config{
		Parallel: h.parallel, Timeout: h.timeout, PermanentExit: h.permanentExit,
		Environ: config.Inherited(), StateFolder: h.notesFolder(),
		Owner: h.owner(),
		Mask:  mask.Failure, Clock: h.Now,
		Warn: func(format string, args ...any) {
			fmt.Fprintln(h.Err, "nixie:", escape(mask.Text(fmt.Sprintf(format, args...))))
		},
	}
	if h.printer != nil {
		cfg.Show = h.printer.show
	}
	if len(cmd) > 0 {
		step, err := command.Exec(cmd)
		if err != nil {
			return nil, err
		}
		step.Persistent = h.persistent
		cfg.Steps = []command.Step{step}
	}
	return cfg, nil
}

// summary prints a summary: for people on standard error, because standard output has the output of
// commands.
func (h *handling) summary(v any, human func(io.Writer)) error {
	if !h.forPeople() {
		return h.object(v, nil)
	}
	var b bytes.Buffer
	human(&b)
	_, _ = h.Err.Write(b.Bytes()) // standard error may be closed
	return nil
}

// owner returns a name for this process that no other one has or had.
func (g *globals) owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), strconv.FormatInt(g.Now().UnixNano(), 36))
}

// drive runs work under a progress display. After an interrupt commands that run may finish, after
// another signal only within the grace. A second signal ends them.
func (h *handling) drive(ctx context.Context, r *runner.Runner, endless bool, work func(context.Context) error) error {
	var shown *progress
	if !h.on {
		shown = newProgress(h.Streams, r.Counts, endless)
	}
	// A thread that waits for a command keeps a processor of Go's scheduler. While no processor is
	// idle the scheduler checks all the time whether to take it away, so it gets idle ones.
	h.processors.Do(func() { runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0)) })
	if h.printer != nil {
		h.printer.bar = shown
	}
	grace := time.NewTimer(0)
	end := watchInterrupts(ctx, func() {
		within := ""
		if h.grace >= 0 && !byPerson(ctx) {
			within = " within " + h.grace.String()
			grace = time.AfterFunc(h.grace, r.Abort)
		}
		fmt.Fprintf(h.Err, "\nnixie: commands that run may finish%s; interrupt again to end them now\n", within)
	}, r.Abort)
	err := work(ctx)
	shown.end()
	end()
	grace.Stop()
	return err
}

// interrupted gives the error of an interrupted command its exit code.
func (h *handling) interrupted(ctx context.Context, err error) error {
	var code exit
	if err == nil || errors.As(err, &code) || ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(h.Err, "nixie: %s\n", escape(err.Error()))
	return exit(ExitInterrupted)
}
