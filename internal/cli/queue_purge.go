package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newQueuePurge(g *globals) *cobra.Command {
	var choice filterFlag
	b := &bulk{globals: g, required: true}
	cmd := g.inOffice(g.described("queue purge", oneArg("queue")), func(ctx context.Context, o *office.Office, args []string) error {
		p := &office.PurgeRequest{
			Queue: args[0], Filter: choice.filter, Reason: b.reason,
			Progress: func(v office.PurgeView) { g.status("%d canceled", v.Canceled) },
		}
		return b.do(func() (plan, error) {
			v, err := o.PreviewPurge(ctx, p)
			return plan{1, func(w io.Writer) { printPurge(w, &v, "would be canceled") }, v, nil}, err
		}, func() error {
			v, err := o.Purge(ctx, p)
			g.status("")
			return one(g, func(w io.Writer, v *office.PurgeView) { printPurge(w, v, "canceled") })(v, err)
		})
	}, checked(func() error { return cmp.Or(b.needReason(), b.canAsk()) }), &choice)
	b.register(cmd.Flags(), "reason", "in the audit")
	return cmd
}

func printPurge(w io.Writer, v *office.PurgeView, done string) {
	fmt.Fprintf(w, "%s of queue %s %s", plural(v.Canceled, "message"), escapeLine(v.Queue), done)
	if v.Leased > 0 {
		fmt.Fprintf(w, "; %d leased go on", v.Leased)
	}
	fmt.Fprintln(w)
}

func newQueueDrain(g *globals) *cobra.Command {
	d := &office.DrainRequest{}
	var reason reasonFlag
	var timeout durationFlag
	cmd := g.inOffice(g.described("queue drain", oneArg("queue")), func(ctx context.Context, o *office.Office, args []string) error {
		d.Queue, d.Reason, d.Timeout, d.Progress = args[0], reason.text, time.Duration(timeout), g.drainProgress()
		v, err := o.Drain(ctx, d)
		g.status("")
		if ctx.Err() != nil {
			g.say("stopped waiting; queue %s stays closed", args[0])
			return exit(ExitInterrupted)
		}
		if err := one(g, printDrain)(v, err); err != nil || v.Drained {
			return err
		}
		g.say("not empty after %s; it stays closed. Wait on with the same command, or open it with\n  %s", time.Duration(timeout),
			g.typed("queue", "resume", quote(args[0]), "--reason", "…"))
		return exit(ExitPartly)
	}, &reason)
	cmd.Flags().BoolVar(&d.DueOnly, "due-only", false, "do not wait for what is due later")
	cmd.Flags().Var(&timeout, "timeout", "wait no longer than this, such as 10m (default for ever)")
	return cmd
}

func printDrain(w io.Writer, v *office.DrainView) {
	fmt.Fprintf(w, "%s: %s, %d ready, %d blocked, %d scheduled, %d leased\n", escapeLine(v.Queue),
		either(v.Drained, "drained", "not empty"),
		v.Ready, v.Blocked, v.Scheduled, v.Leased)
}

// drainProgress shows what is left: on one line of a terminal, elsewhere as a new line at each
// change.
func (g *globals) drainProgress() func(office.DrainView) {
	var before office.DrainView
	return func(v office.DrainView) {
		if v == before {
			return
		}
		before = v
		g.status("")
		fmt.Fprintf(g.Err, "%d ready, %d blocked, %d scheduled, %d leased", v.Ready, v.Blocked, v.Scheduled, v.Leased)
		if !g.ErrTTY {
			fmt.Fprintln(g.Err)
		}
	}
}
