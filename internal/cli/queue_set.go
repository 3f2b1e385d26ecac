package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
)

func newQueuePause(g *globals) *cobra.Command {
	return g.switching(&cobra.Command{
		Use:   "pause QUEUE…",
		Short: "Stop handing out messages",
		Long: `Stops the handing out of messages: workers find nothing from their next poll on.
What is leased goes on to its end, and new messages are taken in. A queue that is
paused already stays as it is.`,
		Example: `  nixie queue pause orders billing --reason 'database is moved'`,
	}, (*office.Office).Pause)
}

func newQueueResume(g *globals) *cobra.Command {
	return g.switching(&cobra.Command{
		Use:     "resume QUEUE…",
		Short:   "Hand out again, and take in again",
		Long:    `Takes back what queue pause, a halt or queue drain did.`,
		Example: `  nixie queue resume orders --reason 'database is there again'`,
	}, (*office.Office).Resume)
}

// switching completes a command that changes queues and prints what is set then.
func (g *globals) switching(
	cmd *cobra.Command, do func(*office.Office, context.Context, []string, string) ([]office.SettingsChange, error),
) *cobra.Command {
	type v = office.SettingsChange
	var reason reasonFlag
	cmd.Args = arguments(1, math.MaxInt, "wants one queue or more: see %[1]s --help")
	return g.inOffice(cmd, func(ctx context.Context, o *office.Office, args []string) error {
		return listed(g, "", []column[v]{
			{name: "queue", kind: flex},
			{name: "paused", kind: flex, cell: func(c *v) string { return yesNo(c.Paused) + note(c.PausedNote) }},
			{name: "closed", kind: flex, cell: func(c *v) string { return yesNo(c.Closed) + note(c.ClosedNote) }},
			{name: "changed"},
		})(do(o, ctx, args, reason.text))
	}, &reason)
}

func newQueueSet(g *globals) *cobra.Command {
	var reason reasonFlag
	return g.command(&cobra.Command{
		Use:   "set QUEUE NAME=VALUE…",
		Short: "Change settings of a queue",
		Long: `Changes the named settings and leaves the others as they are. The value default
takes one back. A queue that does not exist is made, and so is the store: an order
has to be set before the first message. Options of the policy hold for every worker
of the queue that names none of its own, and for what it receives 5 s later; those that
are lists are given entry by entry and replace what was set. The settings:

  ` + strings.Join(office.SettingNames(), "\n  "),
		Example: `  nixie queue set orders lease=2m --reason 'handlers got slower'
  nixie queue set orders order=strict dead-head=free --reason 'one customer, one line'
  nixie queue set orders retention=30d letter-retention=90d --reason 'the law wants so'
  nixie queue set orders max-attempts=10 backoff='linear base=1m' --reason 'the bank is slow'
  nixie queue set orders lease=default --reason 'they are fast again'`,
		Args: arguments(2, math.MaxInt, "wants a queue and settings NAME=VALUE: see %[1]s --help"),
	}, func(ctx context.Context, args []string) error {
		edit, err := office.ParseSettings(args[1:])
		if err != nil {
			return err
		}
		return g.visitStore(app.Options{Clock: g.Now}, func(o *office.Office) error {
			return one(g, func(w io.Writer, c *office.SettingsChange) {
				printSettings(w, &c.SettingsView)
				if !c.Changed {
					fmt.Fprintln(w, "\nnothing changed: it was so before")
				}
			})(o.Set(ctx, args[0], edit, reason.text))
		})
	}, &reason)
}

func newQueueShow(g *globals) *cobra.Command {
	return g.inOffice(&cobra.Command{
		Use:   "show QUEUE",
		Short: "Show every setting of a queue, and where it comes from",
		Example: `  nixie queue show orders
  nixie queue show orders -o json | jq -r .lease`,
		Args: oneArg("queue"),
	}, func(ctx context.Context, o *office.Office, args []string) error {
		return one(g, printSettings)(o.Settings(ctx, args[0]))
	})
}

func printSettings(w io.Writer, v *office.SettingsView) {
	var f facts
	f.add("queue", v.Queue, "paused", yesNo(v.Paused)+note(v.PausedNote), "closed", yesNo(v.Closed)+note(v.ClosedNote))
	for _, s := range [...]struct{ name, value string }{
		{"lease", v.Lease}, {"dedupe", string(v.Dedupe)}, {"order", string(v.Order)}, {"dead-head", string(v.DeadHead)}, {"priority-age", v.PriorityAge},
		{"retention", v.Retention}, {"letter-retention", v.LetterRetention}, {"audit-retention", v.AuditRetention},
	} {
		f.add(s.name, s.value+note(either(slices.Contains(v.Defaults, s.name), "default", "set")))
	}
	for _, line := range v.Policy {
		name, value, _ := strings.Cut(line, "=")
		f.add(name, value+note("set"))
	}
	if len(v.Policy) == 0 {
		f.add("policy", "profile "+policy.DefaultProfile+note("default"))
	}
	if !v.ChangedAt.IsZero() {
		f.add("changed", clock(v.ChangedAt)+" by "+v.ChangedBy+": "+v.ChangedWhy)
	}
	f.print(w)
}
