package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/sqldriver"
)

// report is what a run found.
type report struct {
	Machine   machine                     `json:"machine"`
	Libraries []described                 `json:"libraries"`
	Summaries []summary                   `json:"summaries"`
	Targets   []verdict                   `json:"targets"`
	Results   map[string][]contest.Result `json:"results"` // by scenario and library, round by round
	Rounds    int                         `json:"rounds"`
	Peers     map[contest.Scenario]string `json:"peers_synchronous"`
	options   options
}

// machine is where it was measured.
type machine struct {
	Go         string    `json:"go"`
	System     string    `json:"system"`
	Processors int       `json:"processors"`
	Driver     string    `json:"peers_driver"`
	InMemory   bool      `json:"files_in_memory"`
	At         time.Time `json:"at"`
}

// described is an entrant for the reader.
type described struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Settings string `json:"settings"`
}

// verdict is a target and what was reached.
type verdict struct {
	Name    string  `json:"name"`
	Ratio   float64 `json:"ratio"`
	Want    float64 `json:"want"`
	Against string  `json:"against"` // the best of its kind
	OK      bool    `json:"ok"`
}

func (v verdict) String() string {
	word := "short"
	if v.OK {
		word = "ok"
	}
	return fmt.Sprintf("target %s %.2f want %.2f %s", v.Name, v.Ratio, v.Want, word)
}

func newReport(o options) *report {
	r := &report{Results: map[string][]contest.Result{}, Rounds: o.rounds, Peers: map[contest.Scenario]string{}, options: o}
	for _, s := range o.scenarios {
		r.Peers[s] = o.peersAt(s)
	}
	r.Machine = machine{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(),
		Driver: sqldriver.Driver, InMemory: inMemory(o.folder), At: time.Now().UTC().Truncate(time.Second),
	}
	for _, e := range o.entrants {
		r.Libraries = append(r.Libraries, described{e.Name, versionOf(e.Module), e.Settings})
	}
	return r
}

// inMemory reports whether a folder lies on no disk (tmpfs of Linux).
func inMemory(folder string) bool {
	const tmpfs = 0x01021994
	var st syscall.Statfs_t
	return runtime.GOOS == "linux" && syscall.Statfs(folder, &st) == nil && int64(st.Type) == tmpfs
}

// versionOf is the version of a module in this program.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}

func key(s contest.Scenario, library string) string { return string(s) + " " + library }

func (r *report) add(s contest.Scenario, library string, one contest.Result) {
	r.Results[key(s, library)] = append(r.Results[key(s, library)], one)
}

// finish makes medians, ratios and verdicts of the results.
func (r *report) finish() {
	nixie := r.nixie()
	for _, s := range r.options.scenarios {
		for _, e := range r.options.entrants {
			list := r.Results[key(s, e.Name)]
			if len(list) == 0 {
				continue
			}
			sum := summarize(s, e.Name, list)
			if nixie != "" && nixie != e.Name {
				sum.NixieRatio = ratio(s, r.Results[key(s, nixie)], list)
			}
			r.Summaries = append(r.Summaries, sum)
		}
	}
	for _, t := range targets() {
		if v, ok := r.judge(t, nixie); ok {
			r.Targets = append(r.Targets, v)
		}
	}
}

// nixie is the name of ours, or nothing when it does not take part.
func (r *report) nixie() string {
	for _, e := range r.options.entrants {
		if e.Kind == contest.Ours {
			return e.Name
		}
	}
	return ""
}

// judge finds the best of those that a target is against: the one against which
// the ratio is the lowest.
func (r *report) judge(t target, nixie string) (v verdict, ok bool) {
	v = verdict{Name: t.name, Want: t.want}
	own := r.Results[key(t.scenario, nixie)]
	for _, e := range r.options.entrants {
		list := r.Results[key(t.scenario, e.Name)]
		if e.Kind != t.against || len(list) == 0 || len(own) == 0 {
			continue
		}
		if x := ratio(t.scenario, own, list); !ok || x < v.Ratio {
			v.Ratio, v.Against, ok = x, e.Name, true
		}
	}
	v.OK = v.Ratio >= v.Want
	return v, ok
}

// short reports whether a target was not reached.
func (r *report) short() bool {
	for _, v := range r.Targets {
		if !v.OK {
			return true
		}
	}
	return false
}

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// write prints the report for people.
func (r *report) write(out io.Writer) {
	m := r.Machine
	fmt.Fprintf(out, "%s on %s, %d processors, %s; medians of %d rounds\n", m.Go, m.System, m.Processors, m.At.Format(time.RFC3339), r.Rounds)
	if m.InMemory {
		fmt.Fprintln(out, "The files lie in memory and not on a disk: what is durable here is for nothing. Give -dir.")
	}
	fmt.Fprintf(out, "Peers: SQLite by %s, WAL. Nixie and the limit: WAL, synchronous FULL.\n", m.Driver)
	for _, d := range r.Libraries {
		fmt.Fprintln(out, "  "+strings.TrimSpace(d.Name+" "+d.Version)+": "+d.Settings)
	}
	fmt.Fprintln(out, "Every run was checked: the same tasks, as often as expected, with the bytes they were sent with.")
	for _, s := range r.options.scenarios {
		fmt.Fprintf(out, "\n%s: %s; peers at %s\n", s, meaning(s), r.Peers[s])
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

func (r *report) writeTable(table io.Writer, s contest.Scenario) {
	head := "library\tmessages\t1/s\tslowest\tfastest\tCPU µs each\tpeak MiB\tfile MiB\tNixie is ×\t"
	if s == contest.PickUp {
		head = "library\tmessages\tfrom call p50 µs\tp99\tfrom return p50 µs\tp99\tbusy\tpeak MiB\tNixie is ×\t"
	}
	fmt.Fprintln(table, head)
	for _, x := range r.Summaries {
		switch {
		case x.Scenario != s:
		case s == contest.PickUp:
			fmt.Fprintf(table, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.3f\t%.1f\t%s\t\n", x.Library, x.N,
				x.CallP50, x.CallP99, x.ReturnP50, x.ReturnP99, x.Busy, mebi(x.Memory), times(x.NixieRatio))
		default:
			fmt.Fprintf(table, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%s\t\n", x.Library, x.N,
				x.Rate, x.Slowest, x.Fastest, x.CPU, mebi(x.Memory), mebi(x.File), times(x.NixieRatio))
		}
	}
}

// meaning is a scenario in words.
func meaning(s contest.Scenario) string {
	switch s {
	case contest.EnqueueOne:
		return "one producer, one message a call"
	case contest.EnqueueMany:
		return "32 producers, one message a call"
	case contest.EnqueueBatch:
		return "one producer, many messages a call"
	case contest.Drain:
		return "the handler does nothing; until the last outcome is stored"
	case contest.FailsOnce:
		return "each message fails once and is retried at once; messages, not attempts"
	case contest.DeadFew:
		return "one of a hundred ends as a dead letter"
	case contest.DeadAll:
		return "every message ends as a dead letter"
	default:
		return "from enqueue to handler in an idle system; busy is processors in use"
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func mebi(bytes float64) float64 { return bytes / (1 << 20) }

// times is how many times better, or nothing.
func times(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}
