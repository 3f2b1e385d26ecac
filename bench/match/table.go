package match

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// write prints the report for people.
func (r *report) write(out io.Writer) {
	m := r.Machine
	fmt.Fprintf(out, "%s on %s, %d processors, %s; medians of %d rounds\n", m.Go, m.System, m.Processors, m.At.Format(time.RFC3339),
		r.Rounds)
	if m.InMemory {
		fmt.Fprintln(out, "The files lie in memory and not on a disk: what is durable here is for nothing. Give -dir.")
	}
	for _, fact := range m.Facts {
		fmt.Fprintln(out, fact)
	}
	for _, d := range r.Libraries {
		fmt.Fprintln(out, "  "+strings.TrimSpace(d.Name+" "+d.Version)+": "+d.Settings)
	}
	fmt.Fprintln(out, "Every run was checked: the same tasks, as often as expected, with the bytes they were sent with.")
	for _, s := range r.options.scenarios {
		fmt.Fprintf(out, "\n%s: %s\n", s, r.meaning(s))
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		r.writeTable(table, s)
		if err := table.Flush(); err != nil {
			return
		}
	}
	fmt.Fprintln(out)
	for _, v := range r.Targets {
		fmt.Fprintf(out, "%s\n", v)
	}
}

// column of a table.
type column struct {
	head, format string
	value        func(*summary) float64
}

// The columns of all scenarios except pick-up.
var rates = []column{
	{"1/s", "%.0f", func(x *summary) float64 { return x.Rate }},
	{"slowest", "%.0f", func(x *summary) float64 { return x.Slowest }},
	{"fastest", "%.0f", func(x *summary) float64 { return x.Fastest }},
	{"CPU µs each", "%.2f", func(x *summary) float64 { return x.CPU }},
}

var waits = []column{
	{"from call p50 µs", "%.0f", func(x *summary) float64 { return x.CallP50 }},
	{"p99", "%.0f", func(x *summary) float64 { return x.CallP99 }},
	{"from return p50 µs", "%.0f", func(x *summary) float64 { return x.ReturnP50 }},
	{"p99", "%.0f", func(x *summary) float64 { return x.ReturnP99 }},
	{"busy", "%.3f", func(x *summary) float64 { return x.Busy }},
}

// columns returns those that have numbers in a table of these.
func columns(s contest.Scenario, list []summary) []column {
	all := rates
	if s.Waits() {
		all = waits
	}
	all = append(all[:len(all):len(all)],
		column{"server µs each", "%.2f", func(x *summary) float64 { return x.ServerCPU }},
		column{"WAL B each", "%.0f", func(x *summary) float64 { return x.WAL }},
		column{"peak MiB", "%.1f", func(x *summary) float64 { return mebi(x.Memory) }},
		column{"file MiB", "%.1f", func(x *summary) float64 { return mebi(x.File) }},
		column{"indexes MiB", "%.1f", func(x *summary) float64 { return mebi(x.Indexes) }},
	)
	var shown []column
	for _, c := range all {
		for i := range list {
			if list[i].Scenario == s && c.value(&list[i]) != 0 {
				shown = append(shown, c)
				break
			}
		}
	}
	return shown
}

func (r *report) writeTable(table io.Writer, s contest.Scenario) {
	filled := columns(s, r.Summaries)
	fmt.Fprint(table, "library\tmessages\t")
	for _, c := range filled {
		fmt.Fprint(table, c.head, "\t")
	}
	fmt.Fprintln(table, "Nixie is ×\tby CPU ×\t")
	for i := range r.Summaries {
		x := &r.Summaries[i]
		if x.Scenario != s {
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t", x.Library, x.N)
		for _, c := range filled {
			fmt.Fprintf(table, c.format+"\t", c.value(x))
		}
		fmt.Fprintf(table, "%s\t%s\t\n", times(x.NixieRatio), times(x.CPURatio))
	}
}

// meaning describes the scenarios.
func (r *report) meaning(s contest.Scenario) string {
	text := meanings[s]
	if r.programme.Note != nil {
		text += "; " + r.programme.Note(s)
	}
	return text
}

var meanings = map[contest.Scenario]string{
	contest.EnqueueOne:     "one producer, one message a call",
	contest.EnqueueMany:    "32 producers, one message a call",
	contest.EnqueueBatch:   "one producer, many messages a call",
	contest.EnqueueBatches: "four producers, many messages a call",
	contest.Drain:          "the handler does nothing; until the last outcome is stored",
	contest.Metrics:        "the same, with an observer for Prometheus",
	contest.Traces:         "the same, with spans of OpenTelemetry; one of a hundred traces is sampled",
	contest.Streams:        "the same in 1,000 streams that keep their order; peers in none",
	contest.FailsOnce:      "each message fails once and is retried at once; messages, not attempts",
	contest.DeadFew:        "one of a hundred ends as a dead letter",
	contest.DeadAll:        "every message ends as a dead letter",
	contest.Blocked:        "streams, with another one whose head is dead and has many followers",
	contest.Scheduled:      "drain, with many messages that are not due",
	contest.Foreign:        "drain, while a transaction of others is open that has enqueued",
	contest.RoundTrip:      "from a request to its answer in an idle system",
	contest.Calls:          "32 callers, each waits for its answer before it asks again",
	contest.Sends:          "the same requests without answers",
	contest.PickUp:         "from enqueue to handler in an idle system; busy is processors in use",
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func mebi(bytes float64) float64 { return bytes / (1 << 20) }

// times writes a factor, or nothing.
func times(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}
