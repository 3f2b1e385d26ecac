package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
)

func newQueue(g *globals) *cobra.Command {
	return g.family("queue", newQueueList(g), newQueueStats(g), newQueueShow(g), newQueueSet(g), newQueuePause(g), newQueueResume(g),
		newQueuePurge(g), newQueueDrain(g))
}

func newQueueList(g *globals) *cobra.Command {
	return g.inOffice(g.described("queue list"), func(ctx context.Context, o *office.Office, _ []string) error {
		queues, err := o.Queues(ctx)
		views := make([]office.QueueView, len(queues))
		for i := range queues {
			views[i] = o.ViewQueue(&queues[i])
		}
		return listed(g, "queues", queueColumns(g.Now()))(views, err)
	})
}

// queueColumns are the columns of a list of queues.
func queueColumns(now time.Time) []column[office.QueueView] {
	type v = office.QueueView
	return []column[v]{
		{name: "queue", kind: flex}, {name: "ready"}, {name: "blocked"}, {name: "scheduled"}, {name: "leased"},
		{name: "dead", paint: func(q *v) ink { return inkIf(q.Dead > 0, red) }},
		{name: "succeeded"}, {name: "discarded", show: asWide}, {name: "canceled", show: asWide}, {name: "total", show: asWide},
		{name: "pruned", show: asWide}, {name: "purged", show: asWide},
		{name: "oldest", cell: func(q *v) string { return ageOr(q.OldestAgeS) }},
		{name: "next_in", cell: func(q *v) string { return until(now, q.NextAt) }},
		{name: "died_last_hour", show: asWide}, {name: "retried_last_hour", show: asWide},
		{name: "policy", show: asWide, kind: flex, cell: func(q *v) string { return orDash(strings.Join(q.Policy, "; ")) }},
		{name: "paused", kind: flex, cell: func(q *v) string {
			switch {
			case q.Paused:
				return yesNo(true) + note(q.PausedNote)
			case q.Closed:
				return "closed" + note(q.ClosedNote)
			}
			return "-"
		}},
	}
}

func ageOr(seconds *int64) string {
	if seconds == nil {
		return "-"
	}
	return age(time.Duration(*seconds) * time.Second)
}

func until(now time.Time, at office.Timestamp) string {
	if at.IsZero() {
		return "-"
	}
	return age(at.Sub(now))
}

func newQueueStats(g *globals) *cobra.Command {
	return g.inOffice(g.described("queue stats", oneArg("queue")), func(ctx context.Context, o *office.Office, args []string) error {
		q, err := o.Queue(ctx, args[0])
		return one(g, g.printQueue)(o.ViewQueue(&q), err)
	})
}

func (g *globals) printQueue(w io.Writer, q *office.QueueView) {
	n := numeral
	var f facts
	f.add("queue", q.Queue, "paused", yesNo(q.Paused)+note(q.PausedNote))
	if q.Closed {
		f.add("closed", "yes"+note(q.ClosedNote))
	}
	f.add("ready", n(q.Ready), "blocked", n(q.Blocked), "scheduled", n(q.Scheduled), "leased", n(q.Leased), "dead", n(q.Dead),
		"succeeded", n(q.Succeeded), "discarded", n(q.Discarded), "canceled", n(q.Canceled), "total", n(q.Total),
		"died last hour", n(q.DiedLastHour), "retried last hour", n(q.RetriedLastHour), "discarded for", reasons(q.DiscardsByReason))
	if q.Pruned+q.Purged > 0 {
		f.add("of total gone", fmt.Sprintf("%d pruned, %d purged", q.Pruned, q.Purged))
	}
	if q.OldestAgeS != nil {
		f.add("oldest ready", ageOr(q.OldestAgeS)+", since "+clock(q.OldestAt))
	}
	if q.BlockedAgeS != nil {
		f.add("oldest blocked", ageOr(q.BlockedAgeS)+", since "+clock(q.BlockedAt))
	}
	if !q.NextAt.IsZero() {
		f.add("next due", "in "+until(g.Now(), q.NextAt)+", at "+clock(q.NextAt))
	}
	f.add("lease", q.Lease, "dedupe scope", string(q.DedupeScope), "order", string(q.Order), "policy", strings.Join(q.Policy, "; "),
		"kept", fmt.Sprintf("messages %s, letters %s, audit %s", q.Retention, q.LetterRetention, q.AuditRetention))
	f.print(w)
	if q.Dead > 0 {
		fmt.Fprintf(w, "\nNext:\n  %s\n", g.analyze(q.Queue))
	}
}

// analyze returns the command that tells why messages of some queues died.
func (g *globals) analyze(queues ...string) string {
	return g.typed("dlq", "analyze", "--filter", quote(filter.Text(nixie.Filter{Queues: queues})))
}

// reasons lists counts in the order of their reasons.
func reasons(counts map[string]int64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, counts[reason]))
	}
	return strings.Join(parts, ", ")
}
