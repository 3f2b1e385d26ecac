package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newStats(g *globals) *cobra.Command {
	return family("stats", "See what retries, of what, since when, and what is stuck",
		`About messages that have not ended as well as letters, of one queue or of all.`,
		newStatsRetries(g), newStatsReasons(g), newStatsBacklog(g), newStatsPoison(g), newStatsStalled(g))
}

// anyQueue takes at most one queue.
func anyQueue(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one queue at most, has %d: leave it out for all", cmd.CommandPath(), len(args))
	}
	return nil
}

// rowsOf makes a command's function of one that lists views.
func rowsOf[V any](g *globals, check func() error, noun string, columns func() []column[V], ask func(context.Context, *office.Office, []string) ([]V, error)) func(*cobra.Command, []string) error {
	return g.with(check, func(ctx context.Context, o *office.Office, args []string) error {
		rows, err := ask(ctx, o, args)
		if err != nil {
			return err
		}
		out := newListing(g, columns())
		for _, r := range rows {
			if err := out.add(r); err != nil {
				return err
			}
		}
		return g.ended(out.close(), out.n, noun)
	})
}

func newStatsRetries(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "retries [QUEUE]",
		Short: "Count messages by how many attempts they have begun",
		Long: `Counts messages that failed and are on their way again, and unresolved letters, by
the attempts of their present life.`,
		Example: `  nixie stats retries
  nixie stats retries orders -o csv`,
		Args: anyQueue,
		RunE: rowsOf(g, nil, "retries", func() []column[office.AttemptsView] {
			return []column[office.AttemptsView]{
				{name: "attempts"}, {name: "count"},
				{name: "share", kind: number, cell: func(v *office.AttemptsView) string { return fmt.Sprintf("%.1f%%", 100*v.Share) }},
				{name: "queued"}, {name: "leased"}, {name: "letters"},
			}
		}, func(ctx context.Context, o *office.Office, args []string) ([]office.AttemptsView, error) {
			return o.Retries(ctx, args)
		}),
	}
}

func newStatsReasons(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "reasons [QUEUE]",
		Short: "Count messages that retry, and letters, by what they failed of last",
		Example: `  nixie stats reasons orders
  nixie message list --filter 'queue:orders state:queued reason:timeout'`,
		Args: anyQueue,
		RunE: rowsOf(g, nil, "failures", func() []column[office.ReasonView] {
			return []column[office.ReasonView]{{name: "reason"}, {name: "retrying"}, {name: "letters"}, {name: "advice", kind: flex}}
		}, func(ctx context.Context, o *office.Office, args []string) ([]office.ReasonView, error) {
			return o.Reasons(ctx, args)
		}),
	}
}

func newStatsBacklog(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "backlog [QUEUE]",
		Short: "Show what waits, since when and for when",
		Long: `Shows what waits in each queue, and how much of it is due within a minute, five
minutes, and so on; each column counts what the one before it does not.`,
		Example: `  nixie stats backlog
  nixie stats backlog orders -o json | jq '.[0].due'`,
		Args: anyQueue,
		RunE: rowsOf(g, nil, "queues", func() []column[office.BacklogView] { return backlogColumns(g.Now()) },
			func(ctx context.Context, o *office.Office, args []string) ([]office.BacklogView, error) {
				return o.Backlog(ctx, args)
			}),
	}
}

func backlogColumns(now time.Time) []column[office.BacklogView] {
	type v = office.BacklogView
	list := []column[v]{
		{name: "queue", kind: flex}, {name: "ready"}, {name: "blocked", show: asWide}, {name: "scheduled"},
		{name: "oldest", cell: func(b *v) string { return ageOr(b.OldestAgeS) }},
		{name: "next_in", cell: func(b *v) string { return until(now, b.NextAt) }},
		{name: "last_in", cell: func(b *v) string { return until(now, b.LastAt) }},
	}
	names := []string{"1m", "5m", "15m", "1h", "6h", "1d", "7d", "later"}
	for i, name := range names {
		list = append(list, column[v]{name: name, kind: number, cell: func(b *v) string { return fmt.Sprint(b.Due[i].Count) }})
	}
	return list
}

func newStatsPoison(g *globals) *cobra.Command {
	attempts := office.PoisonAttempts
	more := false
	cmd := &cobra.Command{
		Use:   "poison [QUEUE]",
		Short: "List messages that look as if they will never succeed",
		Long: `Lists messages on their way with many attempts, whose holders vanished, that failed
three times or more and always of the same reason, or that hold up their stream;
most attempts first. What helps: look at one, then hold it (to the office), cancel
it, or mend the handler and reset its attempts.`,
		Example: `  nixie stats poison
  nixie stats poison orders --attempts 5 -o jsonl | jq -r .message_id`,
		Args: anyQueue,
	}
	cmd.Flags().IntVar(&attempts, "attempts", office.PoisonAttempts, "from how many attempts on a message is listed")
	check := func() error {
		if attempts < 1 {
			return usagef("--attempts is %d: give 1 or more", attempts)
		}
		return nil
	}
	list := rowsOf(g, check, "candidates", suspectColumns, func(ctx context.Context, o *office.Office, args []string) (rows []office.PoisonView, err error) {
		rows, more, err = o.Poison(ctx, args, attempts)
		return rows, err
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := list(cmd, args)
		if err == nil && more {
			g.say("there are more: name a queue, or raise --attempts")
		}
		return err
	}
	return cmd
}

func suspectColumns() []column[office.PoisonView] {
	type v = office.PoisonView
	return []column[v]{
		{name: "message_id"}, {name: "key", kind: flex}, {name: "queue", kind: flex}, {name: "stream", show: asWide, kind: flex}, {name: "state"},
		{name: "attempts"}, {name: "crashes", show: asWide},
		{name: "why", kind: flex, cell: func(s *v) string { return strings.Join(s.Why, ", ") }},
		{name: "last_reason"}, {name: "last_failure", kind: flex},
	}
}

func newStatsStalled(g *globals) *cobra.Command {
	leases := office.LongLeases
	cmd := &cobra.Command{
		Use:   "stalled [QUEUE]",
		Short: "List what does not go on, and what to do about it",
		Long: `Lists leases that are over or whose owner has gone and that nobody took back,
messages held for longer than so many leases, paused queues with work in them, streams
that a dead message blocks, and queues whose messages are retried over and over.`,
		Example: `  nixie stats stalled
  nixie stats stalled orders --leases 5 -o jsonl`,
		Args: anyQueue,
	}
	cmd.Flags().IntVar(&leases, "leases", office.LongLeases, "for how many lengths of its lease a message may be held")
	check := func() error {
		if leases < 1 {
			return usagef("--leases is %d: give 1 or more", leases)
		}
		return nil
	}
	cmd.RunE = rowsOf(g, check, "stalls", stallColumns, func(ctx context.Context, o *office.Office, args []string) ([]office.StallView, error) {
		return o.Stalled(ctx, args, leases)
	})
	return cmd
}

func stallColumns() []column[office.StallView] {
	return []column[office.StallView]{
		{name: "what"}, {name: "queue", kind: flex}, {name: "count"},
		{name: "since", cell: func(s *office.StallView) string { return clock(s.Since) }},
		{name: "text", kind: flex}, {name: "fix", kind: flex}, {name: "example", show: asWide},
	}
}
