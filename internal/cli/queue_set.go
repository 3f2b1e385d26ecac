package cli

import (
	"cmp"
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
	return g.switching(g.described("queue pause"), (*office.Office).Pause)
}

func newQueueResume(g *globals) *cobra.Command {
	return g.switching(g.described("queue resume"), (*office.Office).Resume)
}

// switching completes a command that changes queues and prints their settings.
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
	args := arguments(2, math.MaxInt, "wants a queue and settings NAME=VALUE: see %[1]s --help")
	return g.command(g.described("queue set", args), func(ctx context.Context, args []string) error {
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
	return g.inOffice(g.described("queue show", oneArg("queue")), func(ctx context.Context, o *office.Office, args []string) error {
		return one(g, printSettings)(o.Settings(ctx, args[0]))
	})
}

func printSettings(w io.Writer, v *office.SettingsView) {
	var f facts
	f.add("queue", v.Queue, "paused", yesNo(v.Paused)+note(v.PausedNote), "closed", yesNo(v.Closed)+note(v.ClosedNote))
	for _, s := range [...]struct{ name, value string }{
		{"lease", v.Lease}, {"dedupe", string(v.Dedupe)}, {"order", string(v.Order)}, {"dead-head", string(v.DeadHead)},
		{"dead-letter-to", cmp.Or(v.DeadLetterTo, "none")}, {"priority-age", v.PriorityAge},
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
