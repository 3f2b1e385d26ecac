package workflow

import (
	"strings"
	"testing"
)

const good = `name: fix
mode: mapreduce
env:
  WORKERS: "4"
  TARGET: src/${WORKERS}
setup:
  - shell: |
      find . -name '*.go' | jq -R . | jq -s . > items.json
      wc -l < items.json
    capture: count
map:
  input: items.json
  json_path: "$[*]"
  filter: "severity == 'high' || File.score >= 10 OR status != 'done'"
  sort_by: priority DESC
  max_items: 10
  max_parallel: $WORKERS
  agent_template:
    - claude: "/fix '${item.path}' of ${count}"
      commit_required: true
      timeout: 600
    - shell: go test ./${item.path}
      on_failure:
        claude: "/repair ${shell.output}"
        max_attempts: 3
        fail_workflow: true
        commit_required: true
      validate:
        shell: ./measure ${item.path}
        threshold: 95
        result_file: .measure/result.json
        on_incomplete:
          claude: /complete ${validation.gaps}
          max_attempts: 2
reduce:
  commands:
    - shell: echo ${map.successful} of ${map.total} in $TARGET
error_policy:
  on_item_failure: dlq
  continue_on_failure: true
  max_failures: 3
  failure_threshold: 0.2
  circuit_breaker: {failure_threshold: 5, timeout: 30s}
`

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := Parse("fix.yaml", []byte(good), "")
	if err != nil {
		t.Fatal(err)
	}
	if f.Map.Where != "item.severity == 'high' || item.File.score >= 10 OR item.status != 'done'" || f.Map.Parallel != 4 ||
		f.Env[1].Value != "src/4" || f.Policy.Threshold != "20%" || len(f.Map.Steps) != 2 || f.Map.Steps[1].OnFailure.Attempts != 3 {
		t.Errorf("%+v", f)
	}
}

// Each error names the file, line and column, and says what to write.
func TestWrong(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"max_items: 10>max_item: 10":                          `fix.yaml:16:3: key "max_item" is unknown in map: did you mean max_items?`,
		"max_failures: 3>max_failures: x":                     `max_failures is "x": give a whole number`,
		"name: fix>name: fix\nmax_failures: 4":                `max_failures is "3" here, and max_failures is "4" on line 2: give one`,
		"${item.path}' of>${items.path}' of":                  `known in map: known are TARGET, WORKERS, count, item, setup, shell`,
		"${map.total}>${map.totl}":                            `map has no totl: known are map.failed, map.results,`,
		"wc -l < items.json>wc -l < `${item.a}`":              `fix.yaml:9:18: shell: ${shell.output} stands in backticks`,
		"max_parallel: $WORKERS>max_parallel: $OTHER":         `$OTHER is no variable of the file's env`,
		"threshold: 95>threshold: 101":                        `threshold is "101": give a number from 0 to 100`,
		"timeout: 600>write_file: {path: x}":                  `write_file of step is refused: write a shell step`,
		"name: fix>name: !!str fix":                           `fix.yaml:1:7: the tag !!str`,
		"name: fix>name: &a [*a]":                             `fix.yaml:1:11: *a is within &a, so it would have no end`,
		"name: fix>name: fix\nname: fix":                      `fix.yaml:2:1: `,
		"sort_by: priority DESC>sort_by: priority UP":         `sort_by: sort by priority "UP"`,
		"severity ==>severity =~":                             `filter: the expression`,
		"items.json\n  json_path>find . -type f\n  json_path": `a command is refused here`,
		"on_item_failure: dlq>on_item_failure: drop":          `write dlq, retry, skip, stop or custom:COMMAND`,
	} {
		from, to, _ := strings.Cut(change, ">")
		if strings.HasPrefix(change, "wc") {
			from, to = "wc -l < items.json", "echo `echo ${shell.output}`"
		}
		text := strings.Replace(good, from, to, 1)
		if text == good {
			t.Fatalf("%q changes nothing", from)
		}
		_, err := Parse("fix.yaml", []byte(text), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", change, err, want)
		}
	}
}
