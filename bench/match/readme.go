package match

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/bench/contest"
)

// writeReadme puts the run into a document, between the marks of the programme.
func (r *report) writeReadme(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := between(string(old), r.programme.Name, r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// between puts a text between two marks.
func between(document, name, text string) (string, error) {
	first, last := "<!-- run "+name+" -->\n", "<!-- end of run "+name+" -->"
	head, rest, begins := strings.Cut(document, first)
	_, tail, ends := strings.Cut(rest, last)
	if !begins || !ends {
		return "", fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(first), last)
	}
	return head + first + text + last + tail, nil
}

// markdown writes the run as a section of a document.
func (r *report) markdown() string {
	var out strings.Builder
	m := r.Machine
	fmt.Fprintf(&out, "\n%s, %s on %s, %d processors; medians of %d rounds.\n", m.At.Format("2006-01-02"), m.Go, m.System, m.Processors,
		r.Rounds)
	for _, fact := range m.Facts {
		fmt.Fprintf(&out, "%s\n", fact)
	}
	out.WriteString("\nMessages a second, and in brackets µs of processor time for each, of both sides; latencies in µs.\n\n| scenario |")
	for _, e := range r.options.entrants {
		fmt.Fprintf(&out, " %s |", e.Name)
	}
	fmt.Fprintf(&out, "\n|---|%s\n", strings.Repeat("---|", len(r.options.entrants)))
	for _, s := range r.options.scenarios {
		for _, l := range lines(s) {
			fmt.Fprintf(&out, "| %s%s |", s, l.title)
			for _, e := range r.options.entrants {
				fmt.Fprintf(&out, " %s |", r.cell(s, e.Name, l.text))
			}
			out.WriteString("\n")
		}
	}
	out.WriteString("\n| target | reached | wanted | | by the clock | against |\n|---|---|---|---|---|---|\n")
	for _, v := range r.Targets {
		clock := ""
		if v.Clock != 0 {
			clock = fmt.Sprintf("%.2f", v.Clock)
		}
		fmt.Fprintf(&out, "| %s | %.2f | %s | %s | %s | %s |\n", v.Name, v.Ratio, v.wanted(), v.word(), clock, v.Against)
	}
	out.WriteString("\n")
	return out.String()
}

// line makes a line of a table: the numbers of each entrant in a scenario.
type line struct {
	title string
	text  func(*summary) string
}

func lines(s contest.Scenario) []line {
	if !s.Waits() {
		return []line{{"", func(x *summary) string { return fmt.Sprintf("%s (%.1f)", thousands(x.Rate), x.CPU+x.ServerCPU) }}}
	}
	return []line{
		{", p50 and p99 from call", func(x *summary) string { return thousands(x.CallP50) + ", " + thousands(x.CallP99) }},
		{", p50 and p99 from return", func(x *summary) string { return thousands(x.ReturnP50) + ", " + thousands(x.ReturnP99) }},
	}
}

// cell returns the text of one entrant, "" if it was not measured.
func (r *report) cell(s contest.Scenario, library string, text func(*summary) string) string {
	for i := range r.Summaries {
		if x := &r.Summaries[i]; x.Scenario == s && x.Library == library {
			return text(x)
		}
	}
	return ""
}

// thousands writes a number with commas.
func thousands(x float64) string {
	digits := strconv.Itoa(int(x + 0.5))
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
