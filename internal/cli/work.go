package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/runner"
)

// workFlags are the flags of nixie work.
type workFlags struct {
	handling
	drain, untilEmpty bool
}

func newWork(g *globals) *cobra.Command {
	f := &workFlags{handling: handling{globals: g}}
	cmd := &cobra.Command{
		Use:   "work QUEUE… [flags] -- COMMAND [ARG…]",
		Short: "Run a command for each message of queues, until stopped",
		Long: `Runs COMMAND once for each message of the queues, in parallel, with retries, and
keeps what cannot succeed in the dead letter office. Several queues get fair
shares. It goes on until it is stopped: an interrupt or SIGTERM lets commands
finish that run and gives back what was not begun.

  --drain         ends when nothing is due: what is left is for later
  --until-empty   ends when nothing is left, and waits for what is for later

The command gets its message
  as arguments           an argument that is {field}, {a.b[0]} or {} (all of it) is replaced, from a
                         JSON body; {id}, {key}, {queue}, {type} and {stream} also from the message
  on standard input      the body, byte for byte
  in the environment     NIXIE_MESSAGE_ID, NIXIE_QUEUE, NIXIE_TYPE, NIXIE_KEY, NIXIE_STREAM,
                         NIXIE_ITEM_ID (the key, else the ID), NIXIE_ATTEMPT, NIXIE_LEASE,
                         NIXIE_FIELD_<NAME> for the fields of a JSON body
` + handlingHelp + `

Exit codes: 0 stopped as asked; with --drain or --until-empty 5 when messages
died and 130 when interrupted before the end; 1 when the work was halted.`,
		Example: `  nixie work orders --parallel 8 --timeout 30s -- ./import
  nixie work mail bounces --drain -- ./send {key}`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.interrupted(cmd.Context(), f.run(cmd.Context(), args, cmd.ArgsLenAtDash()))
		},
	}
	f.register(cmd.Flags(), "each queue, or of profile nixie")
	cmd.Flags().BoolVar(&f.drain, "drain", false, "end when nothing is due")
	cmd.Flags().BoolVar(&f.untilEmpty, "until-empty", false, "end when nothing is left")
	return cmd
}

func (f *workFlags) run(ctx context.Context, args []string, dash int) error {
	switch {
	case dash == 0 || len(args) == 0:
		return usagef("no queue: nixie work QUEUE… -- COMMAND [ARG…]")
	case dash < 0 || dash == len(args):
		return usagef("no command: give it after --, as in nixie work %s -- ./handle", args[0])
	case f.drain && f.untilEmpty:
		return usagef("--drain and --until-empty are two ends: give one")
	}
	cfg, err := f.config(args[dash:])
	if err != nil {
		return err
	}
	cfg.Queues = args[:dash]
	f.resultsByID()
	switch {
	case f.drain:
		cfg.Until = runner.Drained
	case f.untilEmpty:
		cfg.Until = runner.Empty
	}
	r, err := runner.New(*cfg)
	if err != nil {
		return err
	}
	st, err := f.open(app.Options{Owner: cfg.Owner})
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // everything that counts is committed
	r.Use(st)
	var done runner.Work
	if err := f.drive(ctx, r, newProgress(f.Streams, r.Counts, true), func(ctx context.Context) (err error) {
		done, err = r.Work(ctx)
		return err
	}); err != nil {
		return err
	}
	return f.report(done)
}

// halted says why a worker stopped by itself, which is a failure.
func (g *globals) halted(why string) error {
	fmt.Fprintf(g.Err, "nixie: stopped: %s\n", escape(why))
	return exit(ExitFailure)
}

// report prints what was done and says how the process ends.
func (f *workFlags) report(done runner.Work) error {
	if err := f.summary(done, func(w io.Writer) { f.printWork(w, &done) }); err != nil {
		return err
	}
	switch {
	case done.Halted != "":
		return f.halted(done.Halted)
	case done.Interrupted:
		return exit(ExitInterrupted)
	case done.Dead > 0 && (f.drain || f.untilEmpty):
		return exit(ExitPartly)
	}
	return nil
}

func (f *workFlags) printWork(w io.Writer, done *runner.Work) {
	fmt.Fprintf(w, "%d succeeded, %d retried, %d dead, %d discarded (%s)\n",
		done.Succeeded, done.Retried, done.Dead, done.Discarded, plural(done.Attempts, "attempt"))
	fmt.Fprintf(w, "left: %d ready, %d for later, %d in the hands of others\n", done.Ready, done.Scheduled, done.Leased)
	if done.Dead > 0 {
		fmt.Fprintf(w, "\nNext:\n  %s\n", f.analyze(done.Queues...))
	}
}
