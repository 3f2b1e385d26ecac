package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/policy"
)

// runFlags are the flags of nixie run.
type runFlags struct {
	*globals
	job, idField, jsonPath, format string
	onFailure, profile             string
	parallel, maxAttempts          int
	backoff, timeout, lease        time.Duration
	permanentExit                  []int
	skipBad                        bool
	given                          []string // the flags as they would be typed again
}

func newRun(g *globals) *cobra.Command {
	f := &runFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "run ITEMS [flags] -- COMMAND [ARG…]",
		Short: "Run a command for each item of a list",
		Long: `Runs COMMAND once for each item of ITEMS, in parallel, with retries, and keeps
what cannot succeed in the dead letter office. The same command again goes on
where it was: nothing that had finished runs twice, nothing is lost.

ITEMS is a file of JSON lines, a JSON array (--json-path chooses inside a larger
document), CSV with a header, or plain lines; "-" is standard input.

The command gets its item
  as arguments           an argument that is {field}, {a.b[0]} or {} (all of it) is replaced
  on standard input      byte for byte
  in the environment     NIXIE_ITEM_ID, NIXIE_ATTEMPT, NIXIE_LEASE, NIXIE_FIELD_<NAME>
Nothing of an item is ever read by a shell.

At a timeout or a second interrupt it gets SIGTERM, and SIGKILL 2 seconds later.
With --on-item-failure custom:COMMAND that command gets the failure as JSON on
standard input once an item is given up. Exit 0 discards the item, 10 retries it,
11 buries it and 12 stops the run; anything else buries it and is recorded too.

It says how it went
  exit 0      done                           exit 69     something it needs is down: retried
  exit 65     the item is wrong: buried      exit 75     try again
  killed      out of resources: retried      any other   failed: retried
or by a JSON object in the file $NIXIE_VERDICT:
  {"outcome": "retry", "reason": "throttled", "retry_after": "30s", "steps": ["fetched"]}`,
		Example: `  nixie run webhooks.jsonl --parallel 8 --timeout 30s -- ./deliver {url}
  find . -name '*.go' | nixie run - --job fmt -- gofmt -l {line}
  nixie run orders.csv --on-item-failure stop --permanent-exit 3,4 -- ./import.sh {id}`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.readFlags(cmd.Flags()); err != nil {
				return err
			}
			err := f.run(cmd.Context(), args, cmd.ArgsLenAtDash())
			var code exit
			if err != nil && !errors.As(err, &code) && cmd.Context().Err() != nil {
				fmt.Fprintf(f.Err, "nixie: %s\n", escape(err.Error()))
				return exit(ExitInterrupted)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.parallel, "parallel", "p", runtime.NumCPU(), "commands at once")
	fs.IntVar(&f.maxAttempts, "max-attempts", policy.DefaultMaxAttempts, "executions of an item, the first included")
	fs.DurationVar(&f.backoff, "backoff", policy.DefaultBase, "base of the exponential wait before a retry, up to 15m, with full jitter")
	fs.DurationVar(&f.timeout, "timeout", 0, "limit of one execution; 0 is none")
	fs.StringVar(&f.idField, "id-field", items.DefaultIDField, "field that holds the id of an item; items without one are named by their content")
	fs.StringVar(&f.job, "job", "", "name of the job (default from the absolute path of ITEMS; standard input needs it)")
	fs.StringVar(&f.profile, "profile", policy.DefaultProfile, "set of policy values to start from: "+strings.Join(policy.Profiles(), ", "))
	fs.StringVar(&f.onFailure, "on-item-failure", string(runner.ToOffice), "what becomes of an item that is given up: dlq, retry, discard, stop or custom:COMMAND")
	fs.BoolVar(&f.skipBad, "skip-bad", false, "dead-letter unreadable items instead of refusing the list")
	fs.StringVar(&f.jsonPath, "json-path", "", "where the items are in a JSON document, such as $.data.orders")
	fs.StringVar(&f.format, "format", string(items.Auto), "auto, jsonl, json, csv or lines")
	fs.IntSliceVar(&f.permanentExit, "permanent-exit", nil, "exit codes after which an item is not retried")
	fs.DurationVar(&f.lease, "lease", nixie.DefaultLease, "how long an item is held without a sign of life")
	return cmd
}

// listFlag reports whether a flag says how a list is read: nothing that is
// needed once its items are in the store.
func listFlag(name string) bool {
	switch name {
	case "id-field", "json-path", "format", "skip-bad":
		return true
	}
	return false
}

// readFlags notes which flags were given: they are part of the command to type
// next, and what was not given is the profile's to say.
func (f *runFlags) readFlags(fs *pflag.FlagSet) error {
	fromList := fs.Arg(0) != stdinList
	fs.Visit(func(flag *pflag.Flag) {
		switch {
		case flag.Name == "store" || flag.Name == "output":
			return // storeFlag has the one, the other is about this output
		case !fromList && listFlag(flag.Name):
			return
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		if flag.Value.Type() == "bool" {
			f.given = append(f.given, "--"+flag.Name+"="+value)
			return
		}
		f.given = append(f.given, "--"+flag.Name, value)
	})
	if !fs.Changed("max-attempts") {
		f.maxAttempts = 0
	} else if f.maxAttempts == 0 {
		return usagef("--max-attempts is 0: give a number from 1, or -1 for none")
	}
	switch {
	case !fs.Changed("backoff"):
		f.backoff = 0
	case f.backoff == 0:
		f.backoff = -1 // asked for: no waiting
	case f.backoff < 0:
		return usagef("--backoff is %s: give a positive duration, or 0 for no waiting", f.backoff)
	}
	return nil
}

// stdinList is the name of standard input as a list.
const stdinList = "-"

func (f *runFlags) run(ctx context.Context, args []string, dash int) error {
	list, err := listOf(args, dash)
	if err != nil {
		return err
	}
	if f.output != "table" && f.output != "json" {
		return usagef("-o is %q: nixie run prints a table or json", f.output)
	}
	cfg, err := f.config(list, args[dash:])
	if err != nil {
		return err
	}
	r, err := runner.New(*cfg)
	if err != nil {
		return err
	}
	// What is wrong with the arguments or the list is said before a store is made.
	reader, err := runner.OpenList(ctx, f.listOptions(list))
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // it was only read
	st, err := f.open(app.Options{Owner: cfg.Owner})
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // everything that counts is committed
	r.Use(st)
	in, err := r.Intake(ctx, reader)
	if err != nil {
		return err
	}
	f.announce(cfg.Job, in)
	return f.work(ctx, r, args)
}

func (f *runFlags) listOptions(list string) items.Options {
	if list == stdinList && f.InTTY {
		fmt.Fprintln(f.Err, "nixie: reading items from the terminal; end them with Ctrl-D")
	}
	return items.Options{Path: list, Stdin: f.In, Format: items.Format(f.format), JSONPath: f.jsonPath, IDField: f.idField, SkipBad: f.skipBad}
}

// listOf returns ITEMS.
func listOf(args []string, dash int) (string, error) {
	switch {
	case dash < 0 && len(args) == 0 || dash == 0:
		return "", usagef("no list: nixie run ITEMS -- COMMAND [ARG…]")
	case dash < 0 || dash == len(args):
		return "", usagef("no command: give it after --, as in nixie run %s -- ./handle {id}", args[0])
	case dash > 1:
		return "", usagef("%d lists: give one, and the command after --", dash)
	}
	return args[0], nil
}

func (f *runFlags) config(list string, cmd []string) (*runner.Config, error) {
	if f.job == "" {
		if list == stdinList {
			return nil, usagef("standard input has no name: give --job NAME")
		}
		abs, err := filepath.Abs(list)
		if err != nil {
			return nil, err
		}
		f.job = runner.DefaultJob(abs)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &runner.Config{
		Job:     f.job,
		Command: cmd, Parallel: f.parallel, Timeout: f.timeout, Lease: f.lease,
		Policy:    policy.Config{Profile: f.profile, MaxAttempts: f.maxAttempts, Backoff: policy.Backoff{Base: f.backoff}},
		OnFailure: runner.Mode(f.onFailure), PermanentExit: f.permanentExit,
		Environ: config.Inherited(), StateFolder: config.StateFolder(f.Env),
		Owner: fmt.Sprintf("%s:%d:%s", host, os.Getpid(), strconv.FormatInt(f.Now().UnixNano(), 36)),
		Clock: f.Now,
		Warn:  func(format string, args ...any) { fmt.Fprintln(f.Err, "nixie:", escape(fmt.Sprintf(format, args...))) },
	}, nil
}

func (f *runFlags) announce(job string, in runner.Intake) {
	fmt.Fprintf(f.Err, "job %s: %s, %d new", escapeLine(job), plural(in.Items, "item"), in.Added)
	if in.Bad > 0 {
		fmt.Fprintf(f.Err, ", %d unreadable", in.Bad)
	}
	fmt.Fprintln(f.Err)
}

// work runs the job under a progress display. The first interrupt lets commands
// finish that run, the second ends them.
func (f *runFlags) work(ctx context.Context, r *runner.Runner, args []string) error {
	second := make(chan os.Signal, 2)
	signal.Notify(second, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(second)
	shown := newProgress(f.Streams, r.Progress)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		f.watchSignals(ctx, r, second, shown.stop)
	}()
	summary, err := r.Run(ctx)
	shown.end()
	<-finished
	if err != nil {
		return err
	}
	return f.report(summary, args)
}

func (f *runFlags) watchSignals(ctx context.Context, r *runner.Runner, second <-chan os.Signal, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	fmt.Fprintln(f.Err, "\nnixie: commands that run may finish; interrupt again to end them now")
	for heard := 0; heard < 2; heard++ { // the first is the one that ended ctx
		select {
		case <-over:
			return
		case <-second:
		}
	}
	r.Abort()
}
