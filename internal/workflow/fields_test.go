//go:build linux

package workflow_test

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/workflow"
)

// example shows a field. What it does without the lines that end in #! differs.
type example struct {
	text string
	want string // of the outcome; with planned of the plan
}

// planned are examples of what the flags of a job and its phases do, which a plan shows. A map
// stands before those that have none.
var planned = map[string]example{
	"file.name":                          {"name: fix #!\n", "job fix, mapreduce"},
	"file.mode":                          {"mode: standard #!\n", "mode is standard, and the file is of mode mapreduce"},
	"file.env":                           {"env: {A: b} #!\n", "env A=b"},
	"file.agent_command":                 {"agent_command: codex -q #!\nsetup: [{claude: x}]\n", "runs codex -q x"},
	"file.setup":                         {"setup: [{shell: make}] #!\n", "setup\n  1 shell: make"},
	"file.map":                           {"map: {input: i, agent_template: [{shell: b}]} #!\n", "items of i"},
	"file.reduce":                        {"reduce: [{shell: make}] #!\n", "reduce\n  1 shell: make"},
	"file.merge":                         {"merge: [{shell: make}] #!\n", "merge\n  1 shell: make"},
	"file.commands":                      {"commands: [{shell: make}] #!\nname: x\n", "steps\n  1 shell: make"},
	"file.error_policy":                  {"error_policy: {max_failures: 7} #!\n", "--stop-after 7"},
	"file.on_item_failure":               {"on_item_failure: skip #!\n", "--on-item-failure skip"},
	"file.continue_on_failure":           {"continue_on_failure: false #!\n", "--stop-after 1"},
	"file.max_failures":                  {"max_failures: 7 #!\n", "--stop-after 7"},
	"file.failure_threshold":             {"failure_threshold: 0.07 #!\n", "--stop-after 7%"},
	"file.error_collection":              {"error_collection: immediate #!\n", "only aggregate is there"},
	"setup.commands":                     {"setup:\n  timeout: 5\n  commands: [{shell: make}] #!\n", "1 shell: make"},
	"setup.timeout":                      {"setup:\n  commands: [{shell: make}]\n  timeout: 5 #!\n", "within 5s"},
	"map.input":                          {"map:\n  agent_template: [{shell: b}]\n  input: i #!\n", "items of i"},
	"map.json_path":                      {"map:\n  agent_template: [{shell: b}]\n  input: i\n  json_path: $.a[*] #!\n", "--json-path \"$.a[*]\""},
	"map.agent_template":                 {"map:\n  input: i\n  agent_template: {commands: [{shell: b}]} #!\n", "1 shell: b"},
	"map.max_parallel":                   {"env: {N: \"3\"}\nmap:\n  input: i\n  agent_template: [{shell: b}]\n  max_parallel: $N #!\n", "--parallel 3"},
	"map.filter":                         {"map:\n  input: i\n  agent_template: [{shell: b}]\n  filter: type == 'x' #!\n", "--where \"item.type == 'x'\""},
	"map.sort_by":                        {"map:\n  input: i\n  agent_template: [{shell: b}]\n  sort_by: n DESC #!\n", "--sort-by \"n DESC\""},
	"map.distinct":                       {"map:\n  input: i\n  agent_template: [{shell: b}]\n  distinct: n #!\n", "--distinct n"},
	"map.offset":                         {"map:\n  input: i\n  agent_template: [{shell: b}]\n  offset: 3 #!\n", "--offset 3"},
	"map.max_items":                      {"map:\n  input: i\n  agent_template: [{shell: b}]\n  max_items: 3 #!\n", "--max-items 3"},
	"map.on_item_failure":                {"map:\n  input: i\n  agent_template: [{shell: b}]\n  on_item_failure: stop #!\n", "--on-item-failure stop"},
	"reduce.commands":                    {"reduce:\n  timeout: 5\n  commands: [{shell: make}] #!\n", "1 shell: make"},
	"reduce.timeout":                     {"reduce:\n  commands: [{shell: make}]\n  timeout: 2m #!\n", "within 2m"},
	"reduce.with_letters":                {"reduce:\n  commands: [{shell: make}]\n  with_letters: false #!\n", "not while items are dead"},
	"merge.commands":                     {"merge:\n  timeout: 5\n  commands: [{shell: make}] #!\n", "1 shell: make"},
	"merge.timeout":                      {"merge:\n  commands: [{shell: make}]\n  timeout: 2m #!\n", "within 2m"},
	"error_policy.on_item_failure":       {"error_policy:\n  max_failures: 9\n  on_item_failure: custom:./ask me #!\n", "--on-item-failure custom:./ask me"},
	"error_policy.continue_on_failure":   {"error_policy:\n  on_item_failure: dlq\n  continue_on_failure: false #!\n", "--stop-after 1"},
	"error_policy.max_failures":          {"error_policy:\n  on_item_failure: dlq\n  max_failures: 9 #!\n", "--stop-after 9"},
	"error_policy.failure_threshold":     {"error_policy:\n  on_item_failure: dlq\n  failure_threshold: 30% #!\n", "--stop-after 30%"},
	"error_policy.error_collection":      {"error_policy:\n  on_item_failure: dlq\n  error_collection: batched:3 #!\n", "only aggregate is there"},
	"error_policy.circuit_breaker":       {"error_policy:\n  on_item_failure: dlq\n  circuit_breaker: {failure_threshold: 4} #!\n", "--breaker 4,3,30s,3"},
	"circuit_breaker.failure_threshold":  {"error_policy:\n  circuit_breaker:\n    timeout: 1m\n    failure_threshold: 9 #!\n", "--breaker 9,3,1m,3"},
	"circuit_breaker.success_threshold":  {"error_policy:\n  circuit_breaker:\n    timeout: 1m\n    success_threshold: 2 #!\n", "--breaker 5,2,1m,3"},
	"circuit_breaker.timeout":            {"error_policy:\n  circuit_breaker:\n    failure_threshold: 4\n    timeout: 1m #!\n", "--breaker 4,3,1m,3"},
	"circuit_breaker.half_open_requests": {"error_policy:\n  circuit_breaker:\n    timeout: 1m\n    half_open_requests: 1 #!\n", "--breaker 5,3,1m,1"},
	"timeout_config.command_timeouts":    {"map:\n  input: i\n  agent_template: [{exec: b}, {shell: c}]\n  timeout_config:\n    agent_timeout_secs: 60\n    command_timeouts: {exec: 9} #!\n", "runs b\n    within 9s"},
	"retry.backoff":                      {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      backoff: fibonacci #!\n", "1s ×1, 1, 2, 3, 5"},
	"retry.max_delay":                    {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      max_delay: 7 #!\n", "up to 7s"},
	"retry.increment":                    {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      backoff: linear\n      increment: 7 #!\n", "7s"},
	"retry.base":                         {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      base: 3 #!\n", "×3"},
	"retry.jitter":                       {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      jitter: true #!\n", "±30 %"},
	"retry.jitter_factor":                {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      jitter_factor: 0.1 #!\n", "±10 %"},
	"retry.retry_budget":                 {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      retry_budget: 1m #!\n", "3 runs within 1m"},
	"retry.initial_delay":                {"setup:\n  - shell: x\n    retry:\n      attempts: 3\n      initial_delay: 3 #!\n", "3s ×2"},
}

// inMap makes a file whose steps run for each item.
func mapOf(steps string) string {
	return "map:\n  input: i\n  agent_template:\n" + steps
}

// ran are examples of what steps do, which run for an item.
var ran = map[string]example{
	"map.agent_timeout_secs":            {"map:\n  input: i\n  agent_timeout_secs: 0.3 #!\n  agent_template: [{shell: sleep 0.1}, {shell: sleep 1}]\n", "all steps together have 300ms"},
	"map.timeout_config":                {"map:\n  input: i\n  timeout_config: {agent_timeout_secs: 0.3} #!\n  agent_template: [{shell: sleep 0.1}, {shell: sleep 1}]\n", "all steps together have 300ms"},
	"timeout_config.agent_timeout_secs": {"map:\n  input: i\n  timeout_config:\n    command_timeouts: {exec: 20}\n    agent_timeout_secs: 0.3 #!\n  agent_template: [{shell: sleep 0.1}, {shell: sleep 1}]\n", "(timeout"},
	"step.shell":                        {"- shell: echo $((1+1)) > out #!\n- shell: 'true'\n", `out="2\n"`},
	"step.exec":                         {"- exec: cp sub/file 'a b' #!\n- shell: 'true'\n", `a b="old\n"`},
	"step.agent":                        {"- agent: sh agent 'one $$x' #!\n- shell: 'true'\n", `said="agent: one $x\n" log="log"`},
	"step.claude":                       {"- claude: /fix it's #!\n- shell: 'true'\n", `said="agent: /fix it's\n"`},
	"step.name":                         {"- shell: exit 3\n  name: three #!\n", "in three)"},
	"step.id":                           {"- shell: echo x\n  id: first #!\n- shell: echo ${first.output} > out\n", `out="x\n"`},
	"step.env":                          {"- shell: echo $A $B > out\n  env: {A: 'x y', B: $$} #!\n", `out="x y $\n"`},
	"step.working_dir":                  {"- shell: pwd | sed 's/.*tree//' > out\n  working_dir: sub #!\n", `sub/out="/sub\n"`},
	"step.timeout":                      {"- exec: sleep 1\n  timeout: 0.2 #!\n", "timed out after 200ms"},
	"step.when":                         {"- {shell: echo 3, capture: n}\n- shell: echo > out\n  when: ${n} > 3 && shell.output == '3' #!\n", ""},
	"step.capture":                      {"- shell: printf '%s\\n' 'a  b' ''\n  capture: x #!\n- shell: printf '[%s]' ${x} > out\n", `out="[a  b]"`},
	"step.capture_output":               {"- shell: echo 5\n  capture_output: x #!\n- shell: printf '[%s]' ${x} > out\n", `out="[5]"`},
	"step.capture_format":               {"- shell: echo '{\"a\":[1,2]}'\n  capture: x\n  capture_format: json #!\n- shell: printf '[%s]' ${x.a[1]} > out\n", `out="[2]"`},
	"step.commit_required":              {"- shell: 'true'\n  commit_required: true #!\n", "no commit"},
	"step.on_success":                   {"- shell: 'true'\n  on_success: {shell: echo > after} #!\n", `after="\n"`},
	"step.on_failure":                   {"- shell: test -e fixed\n  on_failure: {shell: touch fixed} #!\n", `fixed=""`},
	"step.retry":                        {"- shell: echo x >> tries; test $(wc -l < tries) = 3\n  retry: {attempts: 3, initial_delay: 0} #!\n", `tries="x\nx\nx\n"`},
	"step.validate":                     {"- shell: 'true'\n  validate: {shell: 'false'} #!\n", "the work is complete by 0 percent, and threshold is 100"},
	"on_failure.shell":                  {"- shell: test -e fixed\n  on_failure:\n    shell: touch fixed #!\n", `fixed=""`},
	"on_failure.exec":                   {"- shell: test -e fixed\n  on_failure:\n    exec: touch fixed #!\n", `fixed=""`},
	"on_failure.agent":                  {"- shell: test -e said\n  on_failure:\n    agent: sh agent x #!\n", `said="agent: x\n"`},
	"on_failure.claude":                 {"- shell: echo why >&2; test -e said\n  on_failure:\n    claude: /fix ${shell.output} #!\n", `said="agent: /fix why\n"`},
	"on_failure.commands":               {"- shell: test -e fixed\n  on_failure:\n    commands: [{shell: touch a}, {shell: mv a fixed}] #!\n", `fixed=""`},
	"on_failure.max_attempts":           {"- shell: test -s fixed && test $(wc -l < fixed) = 3\n  on_failure:\n    shell: echo >> fixed\n    max_attempts: 3 #!\n", `fixed="\n\n\n"`},
	"on_failure.fail_workflow":          {"- shell: exit 4\n  on_failure:\n    shell: 'true'\n    fail_workflow: false #!\n- shell: echo > after\n", `after="\n" warned: item a goes on after step "shell: exit 4", line 1, as fail_workflow is false there: exit status 4`},
	"on_failure.commit_required":        {"- shell: test -e fixed\n  on_failure:\n    shell: touch fixed\n    commit_required: true #!\n", "exit status 1 (command-failed"},
	"on_failure.timeout":                {"- shell: test -e fixed\n  on_failure:\n    exec: sh -c 'sleep 1 && touch fixed'\n    timeout: 0.2 #!\n", "failed"},
	"validate.shell":                    {"- shell: 'true'\n  validate:\n    shell: echo '{\"completion_percentage\":20}' #!\n", "complete by 20 percent"},
	"validate.exec":                     {"- shell: 'true'\n  validate:\n    exec: echo '{\"completion_percentage\":20}' #!\n", "complete by 20 percent"},
	"validate.agent":                    {"- shell: 'true'\n  validate:\n    agent: echo '{\"completion_percentage\":20}' #!\n", "complete by 20 percent"},
	"validate.claude":                   {"- shell: 'true'\n  validate:\n    claude: measure #!\n", `said="agent: measure\n"`},
	"validate.commands":                 {"- shell: 'true'\n  validate:\n    commands: [{shell: echo x}, {shell: 'echo ''{\"completion_percentage\":20}'''}] #!\n", "complete by 20 percent"},
	"validate.threshold":                {"- shell: 'true'\n  validate:\n    shell: echo '{\"completion_percentage\":20}'\n    threshold: 20 #!\n- shell: echo > after\n", `after="\n"`},
	"validate.result_file":              {"- shell: 'true'\n  validate:\n    shell: echo '{\"completion_percentage\":20,\"gaps\":[\"docs\"]}' > sub/r\n    result_file: sub/r #!\n", `complete by 20 percent, and threshold is 100: ["docs"]`},
	"validate.timeout":                  {"- shell: 'true'\n  validate:\n    exec: sleep 1\n    timeout: 0.2 #!\n", "timed out after 200ms"},
	"validate.on_incomplete":            {"- shell: 'true'\n  validate:\n    shell: test -e done\n    on_incomplete: {shell: touch done} #!\n", `done=""`},
	"on_incomplete.shell":               {"- shell: 'true'\n  validate:\n    shell: test -e done\n    on_incomplete:\n      shell: touch done #!\n", `done=""`},
	"on_incomplete.exec":                {"- shell: 'true'\n  validate:\n    shell: test -e done\n    on_incomplete:\n      exec: touch done #!\n", `done=""`},
	"on_incomplete.agent":               {"- shell: 'true'\n  validate:\n    shell: test -e said\n    on_incomplete:\n      agent: sh agent x #!\n", `said="agent: x\n"`},
	"on_incomplete.claude": {"- shell: 'true'\n  validate:\n    shell: test -e said || echo '{\"completion_percentage\":1,\"missing\":\"docs\"}'\n" +
		"    on_incomplete:\n      claude: /complete ${validation.gaps} of ${validation.completion} #!\n", `said="agent: /complete docs of 1\n"`},
	"on_incomplete.commands":     {"- shell: 'true'\n  validate:\n    shell: test -e done\n    on_incomplete:\n      commands: [{shell: touch done}] #!\n", `done=""`},
	"on_incomplete.max_attempts": {"- shell: 'true'\n  validate:\n    shell: test -s done && test $(wc -l < done) = 2\n    on_incomplete:\n      shell: echo >> done\n      max_attempts: 2 #!\n", `done="\n\n"`},
	"on_incomplete.fail_workflow": {"- shell: 'true'\n  validate:\n    shell: 'false'\n    on_incomplete:\n      shell: 'true'\n      fail_workflow: false #!\n- shell: echo > after\n",
		`after="\n" warned: item a goes on`},
	"on_incomplete.commit_required": {"- shell: 'true'\n  validate:\n    shell: test -e done\n    on_incomplete:\n      shell: touch done\n      commit_required: true #!\n", "no commit"},
	"on_incomplete.timeout":         {"- shell: 'true'\n  validate:\n    shell: 'false'\n    on_incomplete:\n      exec: sleep 1\n      timeout: 0.2 #!\n", "timed out after 200ms"},
	"retry.attempts":                {"- shell: echo x >> tries; exit 1\n  retry:\n    initial_delay: 0\n    attempts: 2 #!\n", `tries="x\nx\n"`},
	"retry.max_attempts":            {"- shell: echo x >> tries; exit 1\n  retry:\n    initial_delay: 0\n    max_attempts: 2 #!\n", `tries="x\nx\n"`},
}

// Each field that works has an example, and without the field the outcome is another one.
func TestFields(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, f := range workflow.Fields() {
		name := f.In + "." + f.Name
		shown[name] = true
		e, runs := ran[name]
		look := func(text string) string { return outcomeOf(t, text) }
		if !runs {
			e = planned[name]
			look = planOf
		}
		if f.Works() == (e.text == "") {
			t.Errorf("%s: works %v, and its example is %q", name, f.Works(), e.text)
			continue
		}
		if !f.Works() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(e.text, "#!") {
				t.Fatal("the example has no line that can be left out")
			}
			look := look
			if runs {
				look = func(text string) string { return outcomeOf(t, text) }
			}
			with, without := look(e.text), look(withoutMarked(e.text))
			if !strings.Contains(with, e.want) || with == without {
				t.Errorf("with it:\n%s\nwithout it:\n%s\nwant %s", with, without, e.want)
			}
			if e.want != "" && strings.Contains(without, e.want) {
				t.Errorf("without it also:\n%s", without)
			}
		})
	}
	for _, all := range []map[string]example{planned, ran} {
		for name := range all {
			if !shown[name] {
				t.Errorf("%s is an example of no field", name)
			}
		}
	}
}

// withoutMarked leaves out the lines that end in #!.
func withoutMarked(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "#!\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// planOf returns the plan of a file, or its errors. A file without a map gets one.
func planOf(text string) string {
	if !strings.Contains(text, "map:") && !strings.Contains(text, "commands: [{shell: make}] #!\nname") && text != "name: x\n" && text != "" {
		text += "map: {input: list, agent_template: [{shell: build}]}\n"
	}
	f, err := workflow.Parse("w.yaml", []byte(text), "")
	if err != nil {
		return err.Error()
	}
	return f.Plan()
}
