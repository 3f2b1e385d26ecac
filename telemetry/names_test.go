package telemetry

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// wanted lists what operators of work queues measure, in sources that Nixie follows, with the names
// by which it is found here. A row without one says what it needs first.
var wanted = []struct {
	what  string
	names string // metrics, instruments and alerts
	later string
}{
	{what: "messages enqueued", names: "enqueued_total messaging.client.sent.messages"},
	{what: "messages claimed", names: "received_total messaging.client.consumed.messages"},
	{what: "messages succeeded, failed, retried", names: "settled_total failures_total"},
	{what: "messages dead-lettered", names: "dead_total dlq.messages.sent"},
	{what: "messages discarded", names: "settled_total dlq.messages.discarded"},
	{what: "messages canceled", later: "an event of the store for changes by operators"},
	{what: "attempts until success", names: "attempts_to_end"},
	{what: "queue depth by state, scheduled backlog", names: "queue_messages"},
	{what: "when the next scheduled message is due", later: "the charts of the console"},
	{what: "age of the oldest ready message", names: "queue_oldest_ready_seconds"},
	{what: "age of the oldest dead letter", names: "letters_oldest_seconds"},
	{what: "depth of dead letters", names: "letters dlq.queue.depth"},
	{what: "dead letters that may be redriven, need a person, by class", later: "the charts of the console"},
	{what: "dead letters redriven, recovered, dead again", names: "redriven_total dlq.messages.replayed"},
	{what: "dead letters held, failed for good, quarantined", names: "letters dead_total"},
	{what: "dead letters handled, and how long that takes", names: "dlq.messages.processed dlq.processing.duration_ms"},
	{what: "time in the dead letter office", names: "dlq.message.age_seconds"},
	{what: "letters and messages removed for good", names: "purged_total"},
	{what: "leases that ended, with their holder or before the handler", names: "crashes_total lease_lost_total"},
	{what: "leases renewed", names: "extended_total"},
	{what: "late completions refused", names: "refused_total"},
	{what: "handlers past their timeout", names: "late_total"},
	{what: "blocked streams", names: "streams_blocked"},
	{what: "longest block of a stream", later: "the charts of the console"},
	{what: "candidates for poison", names: "poison_suspects"},
	{what: "duration of handlers", names: "handler_seconds messaging.process.duration"},
	{what: "state of circuit breakers", names: "breaker_transitions_total NixieBreakerOpen"},
	{what: "workers that are alive", names: "workers connected"},
	{what: "health of notifications", later: "notifications of operators"},
	{what: "health of the store", names: "store_up trouble_total"},
	{what: "latency of the store", later: "mailboxes, which measure their calls"},
	{what: "alerts for the rates of death and retry", names: "NixieDeadLetterRate NixieRetryRate"},
	{what: "alert for the depth of dead letters", names: "NixieOldestLetter", later: "threshold alerts; until then /healthz says degraded"},
	{what: "guard for stuck rows", names: "NixieNothingFinishes NixieOldestReady"},
	{what: "which version runs", names: "build_info"},
}

// TestNames prints each metric with the rows of the sources that it answers, and what is missing.
func TestNames(t *testing.T) {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\tkind\tlabels\tanswers")
	known := alertNames(t)
	for _, list := range [][]definition{metrics, instruments} {
		for _, m := range list {
			known = append(known, m.name)
			var rows []string
			for _, row := range wanted {
				if slices.Contains(strings.Fields(row.names), m.name) {
					rows = append(rows, row.what)
				}
			}
			if len(rows) == 0 {
				t.Errorf("%s answers nothing", m.name)
			}
			name := m.name
			if !strings.Contains(name, ".") {
				name = prefix + name
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, m.kind, strings.Join(m.labels, ","), strings.Join(rows, "; "))
		}
	}
	for _, row := range wanted {
		for _, name := range strings.Fields(row.names) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no %s", row.what, name)
			}
		}
		if row.later != "" {
			fmt.Fprintf(table, "later\t\t\t%s: needs %s\n", row.what, row.later)
		} else if row.names == "" {
			t.Errorf("%s: missing", row.what)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
}

// docs/telemetry.md explains each metric.
func TestNamesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		if !strings.Contains(string(page), "`"+prefix+m.name+"`") {
			t.Errorf("docs/telemetry.md has no `%s%s`", prefix, m.name)
		}
		if m.help == "" || len(m.labels) > 3 {
			t.Errorf("%s: help %q, labels %v", m.name, m.help, m.labels)
		}
	}
	for _, m := range instruments {
		if !strings.Contains(string(page), "`"+m.name+"`") {
			t.Errorf("docs/telemetry.md has no `%s`", m.name)
		}
	}
	for _, alert := range alertNames(t) {
		if !strings.Contains(string(page), "`"+alert+"`") {
			t.Errorf("docs/telemetry.md has no `%s`", alert)
		}
	}
}
