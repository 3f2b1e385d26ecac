package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/where"
	"github.com/nixie-go/nixie/policy"
)

// kinds of steps.
var kinds = []string{"shell", "exec", "agent", "claude"}

// maxHandlers bounds handlers within handlers.
const maxHandlers = 8

// readSteps reads a list of steps, which is not empty.
func (r *reader) readSteps(n *node, of string) (steps []command.Step) {
	switch {
	case n.kind != list:
		r.wrong(n.at, "%s: want a list of steps, such as '- shell: go test ./...', this is %s", of, n.kind)
	case len(n.list) == 0:
		r.wrong(n.at, "%s has no steps: write one, or leave %s out", of, of)
	case len(n.list) > nixie.MaxSteps:
		r.wrong(n.at, "%s has %d steps, the limit is %d", of, len(n.list), nixie.MaxSteps)
	}
	for _, item := range n.list {
		if item.kind == text {
			r.wrong(item.at, "a step has a kind: write '- claude: %s', or shell, exec or agent", clip(firstLine(item.text)))
			continue
		}
		b := r.block(item, inStep)
		steps = append(steps, r.readStep(b))
		r.end(b)
	}
	return steps
}

// readStep reads a step: its command, and what is common to all.
func (r *reader) readStep(b *block) command.Step {
	named, id := b.take("name"), b.take("id")
	kind := r.kindOf(b)
	if kind == nil {
		return command.Step{Flow: &command.Flow{}}
	}
	s := r.command(kind)
	s.Name = r.identifier(id)
	if label := r.name(r.first(named, id)); label != "" {
		s.Label = label
	}
	r.settings(b, &s)
	s.Commits = r.flag(b.take("commit_required"), false)
	if when := b.take("when"); when != nil {
		s.When = r.condition(when)
	}
	r.capture(b, &s)
	if retry := b.take("retry"); retry != nil {
		s.Retry = r.retry(retry)
	}
	if after := b.take("on_success"); after != nil {
		s.OnSuccess = r.inner(after, func() []command.Step { return r.someSteps(after, "on_success") })
	}
	if failed := b.take("on_failure"); failed != nil {
		s.OnFailure = r.handler(failed, inHandler)
	}
	if measured := b.take("validate"); measured != nil {
		s.Validate = r.validation(measured)
	}
	return s
}

// first returns the first pair that there is.
func (r *reader) first(a, b *pair) *pair {
	if a != nil {
		return a
	}
	return b
}

// identifier reads a name that values have.
func (r *reader) identifier(p *pair) string {
	s := r.text(p)
	if p == nil {
		return ""
	}
	if !isIdentifier(s) || contains(rootsOfNixie, s) {
		r.wrong(p.value.at, "%s is %s: write letters, digits, _ and -, no digit first, and none of %s", p.name, quoteOr(s, p.value),
			strings.Join(rootsOfNixie, ", "))
	}
	return s
}

func isIdentifier(s string) bool {
	return command.IsVariable(strings.ReplaceAll(s, "-", "_")) && s[0] != '-' && len(s) <= 64
}

// rootsOfNixie are values that no step may take the name of.
var rootsOfNixie = []string{"item", "map", "merge", "setup", "shell", "validation"}

// kindOf takes the one command of a block.
func (r *reader) kindOf(b *block) (found *pair) {
	for _, kind := range kinds {
		p := b.take(kind)
		switch {
		case p == nil:
		case found != nil:
			r.wrong(p.at, "%s and %s in one %s: write two steps", found.name, p.name, b.name)
		default:
			found = p
		}
	}
	if found == nil && !b.none {
		r.wrong(b.at, "this %s runs nothing: write one of %s", b.name, strings.Join(kinds, ", "))
	}
	return found
}

// command makes the step of a kind and a text.
func (r *reader) command(p *pair) command.Step {
	text, s := r.text(p), command.Step{Flow: &command.Flow{}}
	var err error
	switch {
	case strings.TrimSpace(text) == "":
		r.wrong(p.value.at, "%s is empty: write what it runs", p.name)
	case p.name == "shell":
		var flow *command.Flow
		if s.Template, flow, err = command.ScriptOf(text, r.isNamed); err == nil {
			s.Flow = flow
		}
	case p.name == "claude":
		s.Template, err = r.prompt(text)
	default:
		s.Template, err = command.WordsOf(text, r.variable)
	}
	if err != nil {
		r.wrong(r.placeOf(p.value, err), "%s: %v", p.name, err)
	}
	s.Logs = p.name == "agent" || p.name == "claude"
	s.Line, s.Kind, s.Phase = p.at.Line, p.name, r.phase
	s.Label = command.Label(p.name + ": " + strings.TrimSpace(text))
	if err == nil {
		r.checkPaths(p.value, s.Values())
	}
	return s
}

// placeOf returns the position of an error in a text.
func (r *reader) placeOf(n *node, err error) Position {
	var in *command.PlaceError
	if !errors.As(err, &in) {
		return n.at
	}
	line := n.lineAt(in.At)
	if line == n.at.Line {
		return n.at
	}
	start := strings.LastIndexByte(n.text[:in.At], '\n') + 1
	written, _, _ := strings.Cut(n.text[start:], "\n")
	indent := 0
	if line <= len(r.lines) {
		indent = max(strings.Index(r.lines[line-1], written), 0)
	}
	return Position{line, indent + in.At - start + 1}
}

// prompt makes the command of a text for the agent.
func (r *reader) prompt(text string) (command.Template, error) {
	words, err := command.SplitWords(cmp.Or(r.agent, DefaultAgent))
	if err != nil {
		return command.Template{}, fmt.Errorf("the agent's command: %w", err)
	}
	return command.ArgumentsOf(append(words, strings.TrimSpace(text)), r.variable)
}

// isNamed reports whether a name in a script is a value of the file.
func (r *reader) isNamed(name string) bool {
	_, is := r.env[name]
	return is || contains(r.captures, name) || contains(rootsOfNixie, name)
}

// settings reads what a step has around its command.
func (r *reader) settings(b *block, s *command.Step) {
	s.Timeout = r.timeout(b.take("timeout"), s.Kind)
	if dir := b.take("working_dir"); dir != nil {
		s.Dir = r.path(dir)
	}
	p := b.take("env")
	if p == nil {
		return
	}
	if p.value.kind != keys {
		r.wrong(p.value.at, "env: want names with values, this is %s", p.value.kind)
	}
	for _, v := range p.value.pairs {
		if r.checkVariable(v) {
			s.Env = append(s.Env, command.Setting{Name: v.name, Text: r.filled(&v)})
		}
	}
}

// timeout reads the time of a step; without one it is that of its kind.
func (r *reader) timeout(p *pair, kind string) time.Duration {
	if p == nil && r.times[kind] != nil {
		p = &pair{kind, r.times[kind].at, r.times[kind]}
	}
	return r.duration(p)
}

// filled reads a text with values.
func (r *reader) filled(p *pair) command.Text {
	t, err := command.ParseText(r.text(p), r.variable)
	if err != nil {
		r.wrong(p.value.at, "%s: %v", p.name, err)
	}
	r.checkPaths(p.value, t.Paths())
	return t
}

// path reads a path in the worktree.
func (r *reader) path(p *pair) command.Text {
	t := r.filled(p)
	if err := command.CheckPath(t); err != nil {
		r.wrong(p.value.at, "%s: %v", p.name, err)
	}
	return t
}

// capture reads what becomes of standard output.
func (r *reader) capture(b *block, s *command.Step) {
	name, old, format := b.take("capture"), b.take("capture_output"), b.take("capture_format")
	if old != nil && old.value.kind == boolean {
		if old.value.text == "true" && name == nil {
			s.Capture = "shell.output"
		}
		old = nil
	}
	if p := r.same(name, old); p != nil {
		s.Capture = r.identifier(p)
	}
	switch f := r.text(format); {
	case format == nil, f == "string":
	case f == "json":
		s.JSON = true
	case f == "lines", f == "number", f == "boolean":
		r.wrong(format.value.at, "capture_format %s is refused: write json, whose fields, numbers and lists values can name", f)
	default:
		r.wrong(format.value.at, "capture_format is %s: write string or json", quoteOr(f, format.value))
	}
	if format != nil && s.Capture == "" {
		r.wrong(format.at, "capture_format goes with capture, and there is none")
	}
}

// condition reads a condition over values. A ${path} in it is the value.
func (r *reader) condition(p *pair) command.Condition {
	source := r.text(p)
	if p.value.kind == boolean {
		source = p.value.text
	}
	text, err := command.ConditionText(source)
	if err == nil {
		var c *where.Condition
		if c, err = where.ParseCondition(text); err == nil {
			r.checkPaths(p.value, c.Roots())
			return c
		}
	}
	r.wrong(p.value.at, "when: %v", err)
	return nil
}

// inner reads steps within a step.
func (r *reader) inner(p *pair, read func() []command.Step) []command.Step {
	if r.depth == maxHandlers {
		r.wrong(p.at, "handlers nest deeper than %d: a step has on_failure, which has steps with on_failure, and so on", maxHandlers)
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	return read()
}

// someSteps reads a list of steps, or one.
func (r *reader) someSteps(p *pair, of string) []command.Step {
	if p.value.kind == list {
		return r.readSteps(p.value, of)
	}
	return r.readSteps(&node{at: p.value.at, kind: list, list: []*node{p.value}}, of)
}

// handler reads on_failure and on_incomplete: a list of steps, or a block.
func (r *reader) handler(p *pair, name string) *command.Handler {
	h := &command.Handler{Line: p.at.Line, Attempts: 1, Fails: true}
	if p.value.kind == list {
		h.Steps = r.inner(p, func() []command.Step { return r.readSteps(p.value, name) })
		return h
	}
	b := r.block(p.value, name)
	h.Attempts = r.whole(b.take("max_attempts"), 1, policy.MaxInClaim, 1)
	h.Fails = r.flag(b.take("fail_workflow"), true)
	h.Commits = r.flag(b.take("commit_required"), false)
	h.Steps = r.inner(p, func() []command.Step { return r.ownSteps(b) })
	r.end(b)
	return h
}

// ownSteps reads the steps of a block: commands, or one of its own.
func (r *reader) ownSteps(b *block) []command.Step {
	limit, commands := b.take("timeout"), b.take("commands")
	var steps []command.Step
	if commands == nil {
		kind := r.kindOf(b)
		if kind == nil {
			return nil
		}
		steps = []command.Step{r.command(kind)}
	} else {
		for _, kind := range kinds {
			if p := b.take(kind); p != nil {
				r.wrong(p.at, "%s and commands in one %s: write all steps under commands", p.name, b.name)
			}
		}
		steps = r.readSteps(commands.value, b.name)
	}
	for i := range steps {
		steps[i].Timeout = cmp.Or(steps[i].Timeout, r.timeout(limit, steps[i].Kind))
	}
	return steps
}

// validation reads validate.
func (r *reader) validation(p *pair) *command.Validation {
	v := &command.Validation{Line: p.at.Line}
	b := r.block(p.value, inValidate)
	v.Threshold = r.share(b.take("threshold"), 100, 100)
	if file := b.take("result_file"); file != nil {
		v.ResultFile = r.path(file)
	}
	incomplete := b.take("on_incomplete")
	v.Steps = r.inner(p, func() []command.Step { return r.ownSteps(b) })
	if incomplete != nil {
		before := r.gaps
		r.gaps = true
		v.OnIncomplete = r.handler(incomplete, inMissing)
		r.gaps = before
	}
	r.end(b)
	return v
}

// retry reads the runs of one claim.
func (r *reader) retry(p *pair) policy.InClaim {
	b := r.block(p.value, inRetry)
	attempts := r.same(b.take("attempts"), b.take("max_attempts"))
	in := policy.InClaim{
		MaxAttempts: r.whole(attempts, 2, policy.MaxInClaim, 3), MaxTime: r.duration(b.take("retry_budget")),
		Backoff: policy.Backoff{Base: time.Second, Cap: 30 * time.Second, Jitter: policy.JitterNone},
	}
	if base := b.take("initial_delay"); base != nil {
		if r.constant(base) == "0" {
			in.Backoff.Base = -1
		} else {
			in.Backoff.Base = r.duration(base)
		}
	}
	if most := r.duration(b.take("max_delay")); most > 0 {
		in.Backoff.Cap = most
	}
	r.formula(b, &in.Backoff)
	if factor := b.take("jitter_factor"); r.flag(b.take("jitter"), factor != nil) {
		in.Backoff.Jitter, in.Backoff.Fraction = policy.JitterProportional, r.share(factor, 1, 0.3)
	}
	r.end(b)
	if in.Backoff.Base > in.Backoff.Cap {
		r.wrong(p.at, "retry: initial_delay is %s, longer than max_delay, %s", in.Backoff.Base, in.Backoff.Cap)
	} else if err := in.Check(); err != nil {
		r.wrong(p.at, "retry: %v", err)
	}
	return in
}

// formula reads how waits grow.
func (r *reader) formula(b *block, backoff *policy.Backoff) {
	p, increment, base := b.take("backoff"), b.take("increment"), b.take("base")
	formulas := []policy.Formula{policy.Fixed, policy.Linear, policy.Exponential, policy.Fibonacci}
	backoff.Formula = policy.Exponential
	if p != nil {
		backoff.Formula = policy.Formula(r.text(p))
		if !slices.Contains(formulas, backoff.Formula) {
			r.wrong(p.value.at, "backoff is %s: write fixed, linear, exponential or fibonacci", quoteOr(string(backoff.Formula), p.value))
			backoff.Formula = policy.Exponential
		}
	}
	if increment != nil {
		backoff.Step = r.duration(increment)
		if backoff.Formula != policy.Linear {
			r.wrong(increment.at, "increment goes with backoff: linear")
		}
	}
	if base != nil {
		backoff.Factor = r.share(base, policy.MaxFactor, 2)
		if backoff.Formula != policy.Exponential {
			r.wrong(base.at, "base goes with backoff: exponential")
		}
	}
}

// checkPaths refuses values that can never be there.
func (r *reader) checkPaths(n *node, paths []string) {
	for _, path := range paths {
		root, rest, _ := strings.Cut(strings.ReplaceAll(path, "[", "."), ".")
		known := r.roots()
		if !contains(known, root) {
			r.wrong(n.at, "${%s}: no value of that name is known in %s: known are %s", path, r.phase, strings.Join(known, ", "))
			continue
		}
		field, _, _ := strings.Cut(rest, ".")
		if fields, is := fixedValues[root]; is && rest != "" && !contains(fields, field) {
			r.wrong(n.at, "${%s}: %s has no %s: known are %s", path, root, clip(field), root+"."+strings.Join(fields, ", "+root+"."))
		}
	}
}

// fixedValues are the fields of values that Nixie has.
var fixedValues = map[string][]string{
	"map":   {"failed", "results", "successful", "total"},
	"merge": {"source_branch", "target_branch"}, "setup": {"output"}, "shell": {"output"}, "validation": {"completion", "gaps"},
}

// roots lists the first names of values that are known in the phase.
func (r *reader) roots() []string {
	all := append([]string{"shell"}, r.captures...)
	all = append(all, r.variables()...)
	switch r.phase {
	case inMap:
		all = append(all, "item", "setup")
	case inReduce:
		all = append(all, "map", "setup")
	case inMerge:
		all = append(all, "map", "merge", "setup")
	}
	if r.gaps {
		all = append(all, "validation")
	}
	slices.Sort(all)
	return slices.Compact(all)
}
