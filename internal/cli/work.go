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
	cmd := f.command(g.described("work"), f.run)
	f.register(cmd.Flags(), "each queue, or of profile nixie")
	f.registerReply(cmd.Flags())
	f.registerPersistent(cmd.Flags())
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
	if !f.untilEmpty {
		f.endless = "--until-empty"
	}
	cfg, err := f.config(ctx, args[dash:])
	if err != nil {
		return err
	}
	if cfg.Answers, err = f.answers(""); err != nil {
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
	st, err := f.open(ctx, app.Options{Owner: cfg.Owner})
	if err != nil {
		return err
	}
	defer f.close(st)
	r.Use(st)
	var done runner.Work
	if err := f.drive(ctx, r, true, func(ctx context.Context) (err error) {
		done, err = r.Work(ctx)
		return err
	}); err != nil {
		return err
	}
	return f.report(done)
}

// report prints the counts and returns how the process ends.
func (f *workFlags) report(done runner.Work) error {
	if err := f.summary(done, func(w io.Writer) { f.printWork(w, &done) }); err != nil {
		return err
	}
	return f.conclude(done.End, done.Dead > 0 && (f.drain || f.untilEmpty))
}

func (f *workFlags) printWork(w io.Writer, done *runner.Work) {
	fmt.Fprintf(w, "%d succeeded, %d retried, %d dead, %d discarded (%s)\n",
		done.Succeeded, done.Retried, done.Dead, done.Discarded, plural(done.Attempts, "attempt"))
	fmt.Fprintf(w, "left: %d ready, %d for later, %d in the hands of others\n", done.Ready, done.Scheduled, done.Leased)
	if done.Dead > 0 {
		fmt.Fprintf(w, "\nNext:\n  %s\n", f.analyze(done.Queues...))
	}
}
