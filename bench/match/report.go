package match

import (
	"encoding/json"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// report holds the results of a run.
type report struct {
	Machine   machine                     `json:"machine"`
	Libraries []described                 `json:"libraries"`
	Summaries []summary                   `json:"summaries"`
	Targets   []verdict                   `json:"targets"`
	Results   map[string][]contest.Result `json:"results"` // by scenario and library, round by round
	Rounds    int                         `json:"rounds"`
	programme *Programme
	options   options
}

// machine describes the machine.
type machine struct {
	Go         string    `json:"go"`
	System     string    `json:"system"`
	Processors int       `json:"processors"`
	Facts      []string  `json:"facts"` // of the host
	InMemory   bool      `json:"files_in_memory"`
	At         time.Time `json:"at"`
}

// described describes an entrant for the reader.
type described struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Settings string `json:"settings"`
}

func (p *Programme) newReport(o options, g Host) *report {
	r := &report{Results: map[string][]contest.Result{}, Rounds: o.rounds, programme: p, options: o}
	r.Machine = machine{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(),
		Facts: g.Facts(), InMemory: inMemory(o.folder), At: time.Now().UTC().Truncate(time.Second),
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

// versionOf returns the version of a module in this program.
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

// finish computes medians, ratios and verdicts from the results.
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
				own := r.Results[key(s, nixie)]
				sum.NixieRatio, sum.CPURatio = ratio(each(shown(s), own), each(shown(s), list)),
					ratio(each(Processor, own), each(Processor, list))
			}
			r.Summaries = append(r.Summaries, sum)
		}
	}
	for _, t := range r.programme.Targets {
		if v, ok := r.judge(&t, nixie); ok {
			r.Targets = append(r.Targets, v)
		}
	}
}

// nixie returns the name of our entrant, "" when it does not take part.
func (r *report) nixie() string {
	for _, e := range r.options.entrants {
		if e.Kind == contest.Ours {
			return e.Name
		}
	}
	return ""
}

// short reports whether a target was not reached.
func (r *report) short() bool {
	return slices.ContainsFunc(r.Targets, func(v verdict) bool { return !v.OK })
}

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
