package workflow

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/nixie-go/nixie/internal/command"
)

// Plan tells what a file does, one fact a line.
func (f *File) Plan() string {
	var p planner
	p.line("job %s, %s", cmp.Or(f.Job, "without a name"), f.Mode)
	for _, v := range f.Env {
		p.line("env %s=%s", v.Name, quoted(v.Value))
	}
	p.phase("setup", f.Setup)
	if m := f.Map; m != nil {
		p.line("map")
		p.within(func() { p.list(m) })
		p.steps(m.Steps)
	}
	p.phase("reduce", f.Reduce)
	p.phase("merge", f.Merge)
	if f.Mode == Sequence {
		p.line("steps")
		p.steps(f.Steps)
	}
	p.policy(&f.Policy)
	return p.text.String()
}

// planner writes a plan.
type planner struct {
	text   strings.Builder
	indent string
}

func (p *planner) line(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		p.text.WriteString(strings.TrimRight(p.indent+line, " ") + "\n")
	}
}

// fact writes a line if its value is not the default.
func (p *planner) fact(is bool, format string, args ...any) {
	if is {
		p.line(format, args...)
	}
}

func (p *planner) within(write func()) {
	before := p.indent
	p.indent += "  "
	write()
	p.indent = before
}

func quoted(s string) string {
	if strings.ContainsAny(s, " \t\n\"'\\$") || s == "" {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func (p *planner) phase(name string, phase *Phase) {
	if phase == nil {
		return
	}
	p.line("%s", name)
	p.within(func() {
		p.fact(phase.Timeout > 0, "within %s", short(phase.Timeout))
		p.fact(phase.NotAfter, "not while items are dead")
	})
	p.steps(phase.Steps)
}

// short writes a time without parts that are nothing.
func short(d time.Duration) string {
	s := d.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, nothing) {
			s = s[:len(s)-2]
		}
	}
	return s
}

func (p *planner) list(m *Map) {
	p.line("items of %s", m.Input)
	p.fact(m.JSONPath != "", "--json-path %s", quoted(m.JSONPath))
	p.fact(m.Where != "", "--where %s", quoted(m.Where))
	p.fact(m.SortBy != "", "--sort-by %s", quoted(m.SortBy))
	p.fact(m.Distinct != "", "--distinct %s", m.Distinct)
	p.fact(m.Offset > 0, "--offset %d", m.Offset)
	p.fact(m.MaxItems > 0, "--max-items %d", m.MaxItems)
	p.fact(m.Parallel > 0, "--parallel %d", m.Parallel)
	p.fact(m.Timeout > 0, "each within %s", short(m.Timeout))
}

func (p *planner) policy(policy *Policy) {
	p.fact(policy.OnItemFailure != "", "--on-item-failure %s", policy.OnItemFailure)
	p.fact(policy.MaxFailures > 0, "--stop-after %d", policy.MaxFailures)
	p.fact(policy.Threshold != "", "--stop-after %s", policy.Threshold)
	if b := policy.Breaker; b.On() {
		p.line("--breaker %d,%d,%s,%d", b.Failures, b.Successes, short(b.OpenFor), b.HalfOpenMax)
	}
}

func (p *planner) steps(steps []command.Step) {
	p.within(func() {
		for i := range steps {
			p.step(i+1, &steps[i])
		}
	})
}

func (p *planner) step(n int, s *command.Step) {
	p.line("%d %s, line %d", n, s.Label, s.Line)
	p.within(func() {
		words := s.Words()
		if s.Kind == "shell" {
			p.line("sh -c")
			p.within(func() { p.line("%s", strings.TrimRight(words[len(words)-1], "\n")) })
			for _, v := range s.Script() {
				p.line("%s=${%s}", v.Name, v.Value)
			}
		} else {
			for i := range words {
				words[i] = quoted(words[i])
			}
			p.line("runs %s", strings.Join(words, " "))
		}
		p.around(s)
		p.after(s)
	})
}

// around writes what a step has besides its command.
func (p *planner) around(s *command.Step) {
	for _, e := range s.Env {
		p.line("env %s=%s", e.Name, quoted(e.Text.String()))
	}
	p.fact(s.Dir.String() != "", "in %s", s.Dir)
	p.fact(s.Timeout > 0, "within %s", short(s.Timeout))
	if s.When != nil {
		p.line("when %s", s.When)
	}
	p.fact(s.Name != "", "its output is ${%s.output}", s.Name)
	p.fact(s.Capture != "" && !s.JSON, "capture %s", s.Capture)
	p.fact(s.JSON, "capture %s as JSON", s.Capture)
	p.fact(s.Commits, "has to commit")
	p.fact(s.Retry.MaxAttempts > 1, "retry %s", s.Retry)
}

// after writes what runs after the command.
func (p *planner) after(s *command.Step) {
	if v := s.Validate; v != nil {
		from := cmp.Or(v.ResultFile.String(), "its output")
		p.line("validate by %s, complete from %g percent", from, v.Threshold)
		p.steps(v.Steps)
		p.handler("on_incomplete", v.OnIncomplete)
	}
	p.handler("on_failure", s.OnFailure)
	if len(s.OnSuccess) > 0 {
		p.line("on_success")
		p.steps(s.OnSuccess)
	}
}

func (p *planner) handler(name string, h *command.Handler) {
	if h == nil {
		return
	}
	facts := fmt.Sprintf("up to %d times", h.Attempts)
	if h.Attempts == 1 {
		facts = "once"
	}
	if h.Commits {
		facts += ", has to commit"
	}
	if h.Fails {
		facts += ", then it has failed"
	} else {
		facts += ", then work goes on"
	}
	p.line("%s, %s", name, facts)
	p.steps(h.Steps)
}
