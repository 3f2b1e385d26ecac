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
	return g.family("stats", newStatsRetries(g), newStatsReasons(g), newStatsBacklog(g), newStatsPoison(g), newStatsStalled(g))
}

// anyQueue accepts at most one queue.
func anyQueue() cobra.PositionalArgs {
	return arguments(0, 1, "takes one queue at most, has %[2]d: leave it out for all")
}

func newStatsRetries(g *globals) *cobra.Command {
	type v = office.AttemptsView
	return g.inOffice(g.described("stats retries", anyQueue()), func(ctx context.Context, o *office.Office, args []string) error {
		return listed(g, "retries", []column[v]{
			{name: "attempts"}, {name: "count"},
			{name: "share", kind: number, cell: func(a *v) string { return fmt.Sprintf("%.1f%%", 100*a.Share) }},
			{name: "queued"}, {name: "leased"}, {name: "letters"},
		})(o.Retries(ctx, args))
	})
}

func newStatsReasons(g *globals) *cobra.Command {
	return g.inOffice(g.described("stats reasons", anyQueue()), func(ctx context.Context, o *office.Office, args []string) error {
		return listed(g, "failures", []column[office.ReasonView]{
			{name: "reason"}, {name: "retrying"}, {name: "letters"}, {name: "advice", kind: prose},
		})(o.Reasons(ctx, args))
	})
}

func newStatsBacklog(g *globals) *cobra.Command {
	return g.inOffice(g.described("stats backlog", anyQueue()), func(ctx context.Context, o *office.Office, args []string) error {
		return listed(g, "queues", backlogColumns(g.Now()))(o.Backlog(ctx, args))
	})
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
	type v = office.PoisonView
	attempts := atLeastOne{name: "attempts", n: office.PoisonAttempts, usage: "from how many attempts on a message is listed"}
	return g.inOffice(g.described("stats poison", anyQueue()), func(ctx context.Context, o *office.Office, args []string) error {
		found, more, err := o.Poison(ctx, args, attempts.n)
		err = listed(g, "candidates", []column[v]{
			{name: "message_id", kind: ids}, {name: "key", kind: flex},
			{name: "queue", kind: flex}, {name: "stream", show: asWide, kind: flex},
			{name: "state"}, {name: "attempts"}, {name: "crashes", show: asWide},
			{name: "why", kind: flex, cell: func(s *v) string { return strings.Join(s.Why, ", ") }},
			{name: "last_reason"}, {name: "last_failure", kind: flex},
		})(found, err)
		if err == nil && more {
			g.say("there are more: name a queue, or raise --attempts")
		}
		return err
	}, &attempts)
}

func newStatsStalled(g *globals) *cobra.Command {
	type v = office.StallView
	leases := atLeastOne{name: "leases", n: office.DefaultLongLeases, usage: "for how many lengths of its lease a message may be held"}
	return g.inOffice(g.described("stats stalled", anyQueue()), func(ctx context.Context, o *office.Office, args []string) error {
		return listed(g, "stalls", []column[v]{
			{name: "what"}, {name: "queue", kind: flex}, {name: "count"},
			{name: "since", spare: 1},
			{name: "text", kind: prose}, {name: "fix", kind: prose}, {name: "example", show: asWide},
		})(o.Stalled(ctx, args, leases.n))
	}, &leases)
}
