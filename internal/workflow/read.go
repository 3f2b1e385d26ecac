package workflow

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/where"
)

// read reads the whole file.
func (r *reader) read(root *node) {
	r.env = map[string]string{}
	r.captures = namesIn(root, nil)
	if root.kind == list {
		r.sequence(root)
		return
	}
	b := r.block(root, inFile)
	r.file.Job = r.name(b.take("name"))
	mode := b.take("mode")
	r.readEnv(b.take("env"))
	if agent := b.take("agent_command"); agent != nil {
		r.file.Agent = r.constant(agent)
		if _, err := command.WordsOf(r.file.Agent, r.variable); err != nil {
			r.wrong(agent.value.at, "agent_command: %v", err)
		}
		r.agent = r.file.Agent
	}
	commands := b.take("commands")
	setup, mapped, reduce, merge := b.take("setup"), b.take("map"), b.take("reduce"), b.take("merge")
	r.readPolicy(b, mapped)
	switch {
	case commands != nil && mapped != nil:
		r.wrong(commands.at, "commands is for a file without a map, and there is one on line %d: write setup, agent_template or reduce",
			mapped.at.Line)
	case commands != nil:
		r.sequence(commands.value)
	case mapped == nil:
		r.wrong(b.at, "there is neither a map nor a list of steps: write map with input and agent_template, or commands")
	default:
		r.file.Mode = MapReduce
		r.file.Setup = r.readPhase(setup, inSetup)
		r.readMap(mapped)
		r.file.Reduce = r.readPhase(reduce, inReduce)
		r.file.Merge = r.readPhase(merge, inMerge)
		setup, reduce, merge = nil, nil, nil
	}
	for _, p := range []*pair{setup, reduce, merge} {
		if p != nil {
			r.wrong(p.at, "%s goes with a map, and there is none: write its steps under commands", p.name)
		}
	}
	r.checkMode(mode)
	r.end(b)
}

// checkMode compares the mode with what the file has.
func (r *reader) checkMode(p *pair) {
	if p == nil || r.file.Mode == "" {
		return
	}
	switch given := Mode(r.name(p)); {
	case given != MapReduce && given != Sequence:
		r.wrong(p.value.at, "mode is %q: write mapreduce, or standard for a list of steps", clip(string(given)))
	case given != r.file.Mode:
		r.wrong(p.value.at, "mode is %s, and the file is of mode %s: leave mode out, or change one of them", given, r.file.Mode)
	}
}

// namesIn collects the names of captures and of steps.
func namesIn(n *node, names []string) []string {
	for _, p := range n.pairs {
		switch p.name {
		case "capture", "capture_output", "id":
			if p.value.kind == text && !contains(names, p.value.text) {
				names = append(names, p.value.text)
			}
		}
		names = namesIn(p.value, names)
	}
	for _, item := range n.list {
		names = namesIn(item, names)
	}
	return names
}

// sequence reads a plain list of steps.
func (r *reader) sequence(n *node) {
	r.file.Mode, r.phase = Sequence, "steps"
	r.file.Steps = r.readSteps(n, "commands")
}

// readEnv reads the variables of the file. A value may have those before it.
func (r *reader) readEnv(p *pair) {
	if p == nil {
		return
	}
	if p.value.kind != keys {
		r.wrong(p.value.at, "env: want names with values, this is %s", p.value.kind)
		return
	}
	for _, v := range p.value.pairs {
		if r.checkVariable(v) {
			value := r.constant(&v)
			r.env[v.name] = value
			r.file.Env = append(r.file.Env, command.Field{Name: v.name, Value: value})
		}
	}
}

// checkVariable checks the name of a variable.
func (r *reader) checkVariable(v pair) bool {
	switch {
	case !command.IsVariable(v.name):
		r.wrong(v.at, "%q is no name of a variable: write letters, digits and _, no digit first", clip(v.name))
	case strings.HasPrefix(v.name, "NIXIE_"):
		r.wrong(v.at, "%s: names that begin with NIXIE_ are Nixie's own", clip(v.name))
	case v.value.kind == keys:
		r.wrong(v.value.at, "%s: want a text: values by command or by profile are refused; let a setup step capture it", v.name)
	default:
		return true
	}
	return false
}

// readPhase reads steps that run once: a list, or a block with commands.
func (r *reader) readPhase(p *pair, name string) *Phase {
	if p == nil {
		return nil
	}
	r.phase = name
	phase := &Phase{At: p.at}
	if p.value.kind != keys {
		phase.Steps = r.readSteps(p.value, name)
		return phase
	}
	b := r.block(p.value, name)
	phase.Timeout = r.duration(b.take("timeout"))
	if name == inReduce {
		phase.NotAfter = !r.flag(b.take("with_letters"), true)
	}
	if commands := b.take("commands"); commands != nil {
		phase.Steps = r.readSteps(commands.value, name)
	} else {
		r.wrong(p.at, "%s has no steps: write them under commands", name)
	}
	r.end(b)
	return phase
}

// maxParallel is the bound of runner.MaxParallel.
const maxParallel = 1000

// maxNumber bounds numbers of items.
const maxNumber = 1 << 40

// readMap reads the list and the steps of its items.
func (r *reader) readMap(p *pair) {
	r.phase = inMap
	m := &Map{At: p.at}
	r.file.Map = m
	b := r.block(p.value, inMap)
	m.Input = r.readInput(p, b.take("input"))
	if path := b.take("json_path"); path != nil {
		m.JSONPath = r.constant(path)
		if err := items.CheckPath(m.JSONPath); err != nil {
			r.wrong(path.value.at, "json_path: %v", err)
		}
	}
	if filter := b.take("filter"); filter != nil {
		m.Filter = r.text(filter)
		m.Where = r.translate(filter, m.Filter)
	}
	if sort := b.take("sort_by"); sort != nil {
		m.SortBy = r.text(sort)
		if _, err := items.ParseSort(m.SortBy); err != nil || m.SortBy == "" {
			r.wrong(sort.value.at, "sort_by: %v", orEmpty(err))
		}
	}
	if distinct := b.take("distinct"); distinct != nil {
		if m.Distinct = strings.TrimPrefix(r.text(distinct), "item."); m.Distinct == "" {
			r.wrong(distinct.value.at, "distinct: name a field")
		}
	}
	m.Offset = r.whole(b.take("offset"), 0, maxNumber, 0)
	m.MaxItems = r.whole(b.take("max_items"), 1, maxNumber, 0)
	m.Parallel = r.whole(b.take("max_parallel"), 1, maxParallel, 0)
	m.Timeout = r.readTimes(b)
	b.take("on_item_failure") // with the policy
	if template := b.take("agent_template"); template != nil {
		m.Steps = r.readTemplate(template)
	} else {
		r.wrong(p.at, "map has no agent_template: write the steps for each item there")
	}
	r.end(b)
}

func orEmpty(err error) error {
	if err == nil {
		return nixie.Errorf(nixie.CodeInvalid, "name a field, such as priority DESC")
	}
	return err
}

// readInput reads the name of the list.
func (r *reader) readInput(of, p *pair) string {
	input := r.constant(p)
	switch {
	case p == nil:
		r.wrong(of.at, "map has no input: name the file with the items")
	case input == "":
		r.wrong(p.value.at, "input: name the file with the items")
	case strings.ContainsAny(input, " \t\n"):
		r.wrong(p.value.at, "input is %s, which is no file: a command is refused here; let a setup step write a file, and name that",
			strconv.Quote(clip(input)))
	}
	return input
}

// readTemplate reads the steps of each item: a list, or a block with nothing but commands.
func (r *reader) readTemplate(p *pair) []command.Step {
	n := p.value
	if n.kind == keys && len(n.pairs) == 1 && n.pairs[0].name == "commands" {
		n = n.pairs[0].value
	}
	return r.readSteps(n, "agent_template")
}

// readTimes reads the times of an item and of kinds of steps.
func (r *reader) readTimes(b *block) time.Duration {
	seconds := b.take("agent_timeout_secs")
	if config := b.take("timeout_config"); config != nil {
		c := r.block(config.value, inTimeouts)
		seconds = r.same(seconds, c.take("agent_timeout_secs"))
		if kinds := c.take("command_timeouts"); kinds != nil {
			r.readKinds(kinds)
		}
		r.end(c)
	}
	return r.duration(seconds)
}

func (r *reader) readKinds(p *pair) {
	r.times = map[string]*node{}
	if p.value.kind != keys {
		r.wrong(p.value.at, "command_timeouts: want kinds of steps with times, this is %s", p.value.kind)
	}
	for _, kind := range p.value.pairs {
		if !contains(kinds, kind.name) {
			r.wrong(kind.at, "%q is no kind of steps: write %s", clip(kind.name), strings.Join(kinds, ", "))
			continue
		}
		r.duration(&kind)
		r.times[kind.name] = kind.value
	}
}

// readPolicy reads error_policy, and its keys at the top level and in map.
func (r *reader) readPolicy(top *block, mapped *pair) {
	at := map[string]*pair{}
	for _, name := range []string{"on_item_failure", "continue_on_failure", "max_failures", "failure_threshold", "error_collection"} {
		at[name] = top.take(name)
	}
	if mapped != nil && mapped.value.kind == keys {
		for _, p := range mapped.value.pairs {
			if p.name == "on_item_failure" {
				at[p.name] = r.same(at[p.name], &p)
			}
		}
	}
	if p := top.take("error_policy"); p != nil {
		b := r.block(p.value, inPolicy)
		for name := range at {
			at[name] = r.same(at[name], b.take(name))
		}
		if breaker := b.take("circuit_breaker"); breaker != nil {
			r.readBreaker(breaker)
		}
		r.end(b)
	}
	policy := &r.file.Policy
	if p := at["on_item_failure"]; p != nil {
		policy.OnItemFailure = r.readAction(p)
	}
	policy.MaxFailures = int64(r.whole(at["max_failures"], 1, maxNumber, 0))
	if !r.flag(at["continue_on_failure"], true) {
		if policy.MaxFailures > 1 {
			r.wrong(at["continue_on_failure"].at,
				"continue_on_failure is false, which stops at the first, and max_failures is %d on line %d: give one",
				policy.MaxFailures, at["max_failures"].at.Line)
		}
		policy.MaxFailures = 1
	}
	policy.Threshold = r.readThreshold(at["failure_threshold"])
	if p := at["error_collection"]; p != nil && r.text(p) != "aggregate" {
		r.wrong(p.value.at, "error_collection is %s: only aggregate is there: failures are told at the end, in groups; "+
			"nixie map dlq list shows them before",
			quoteOr(r.text(p), p.value))
	}
}

func (r *reader) readAction(p *pair) string {
	action := r.text(p)
	switch custom, is := strings.CutPrefix(action, "custom:"); {
	case is && strings.TrimSpace(custom) == "":
		r.wrong(p.value.at, "on_item_failure is custom without a command: write custom:COMMAND")
	case is, action == "dlq", action == "retry", action == "skip", action == "stop":
	default:
		r.wrong(p.value.at, "on_item_failure is %s: write dlq, retry, skip, stop or custom:COMMAND", quoteOr(action, p.value))
	}
	return action
}

// readThreshold reads a share: from 0 to 1, or in percent.
func (r *reader) readThreshold(p *pair) string {
	if p == nil {
		return ""
	}
	s := r.constant(p)
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n > 0 && n <= 1) {
		r.wrong(p.value.at, "failure_threshold is %s: give a part above 0 up to 1, such as 0.2, or 20%%", quoteOr(s, p.value))
		return ""
	}
	if percent {
		return s
	}
	return strconv.FormatFloat(n*100, 'g', 10, 64) + "%"
}

func (r *reader) readBreaker(p *pair) {
	b := r.block(p.value, inBreaker)
	rules := &r.file.Policy.Breaker
	rules.Failures = r.whole(b.take("failure_threshold"), 1, 1_000_000, 5)
	rules.Successes = r.whole(b.take("success_threshold"), 1, 1_000_000, 3)
	rules.OpenFor = r.duration(b.take("timeout"))
	if rules.OpenFor == 0 {
		rules.OpenFor = 30 * time.Second
	}
	rules.HalfOpenMax = r.whole(b.take("half_open_requests"), 1, 1_000_000, 3)
	r.end(b)
	if err := rules.Check(); err != nil {
		r.wrong(p.at, "circuit_breaker: %v", err)
	}
}

// translate makes --where of a filter.
func (r *reader) translate(p *pair, filter string) string {
	translated, err := where.OfItem(filter)
	if err != nil {
		r.wrong(p.value.at, "%s: %v", p.name, err)
	}
	return translated
}

// String names a position.
func (p Position) String() string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }
