//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// policied is a workflow of items n0, n1 and so on, of which those below BAD fail, and a reduce.
const policied = `POLICY
setup:
  - shell: i=0; while [ $i -lt ITEMS ]; do echo "{\"id\":\"n$i\",\"n\":$i}"; i=$((i+1)); done > items.jsonl
map:
  input: items.jsonl
  max_parallel: 1
  MAP
  agent_template:
    - shell: echo item >> LEDGER; [ ${item.n} -ge BAD ]
reduce:
  REDUCE
  commands:
    - shell: echo reduce >> LEDGER; REDUCES
`

// policyCase is a policy of a file, and how its run ends.
type policyCase struct {
	policy, inMap, inReduce string
	reduces                 string
	items, bad              int
	flags                   []string
	code                    int
	ended                   int // items that ran
	reduced                 bool
	says                    string
}

var policyCases = map[string]policyCase{
	"all succeed": {
		items: 3, ended: 3, reduced: true,
		says: "3 succeeded",
	},
	"dlq": {
		policy: "on_item_failure: dlq",
		items:  3, bad: 1, code: 5, ended: 3, reduced: true,
		says: "2 succeeded, 1 dead",
	},
	"dlq, in the block": {
		policy: "error_policy: {on_item_failure: dlq}",
		items:  3, bad: 3, code: 5, ended: 3, reduced: true,
		says: "0 succeeded, 3 dead",
	},
	"skip": {
		policy: "on_item_failure: skip",
		items:  3, bad: 1, ended: 3, reduced: true,
		says: "2 succeeded, 1 discarded",
	},
	"stop": {
		policy: "on_item_failure: stop",
		items:  3, bad: 1, code: 1, ended: 1,
		says: "1 dead, 2 unfinished",
	},
	"retry": {
		policy: "on_item_failure: retry",
		items:  2, bad: 1, flags: []string{"--max-deliveries", "3", "--backoff", "0"}, code: 5, ended: 4, reduced: true,
		says: "1 succeeded, 1 dead",
	},
	"custom that discards": {
		policy: "on_item_failure: 'custom:true'",
		items:  3, bad: 2, ended: 3, reduced: true,
		says: "1 succeeded, 2 discarded",
	},
	"custom that fails": {
		policy: "on_item_failure: 'custom:false'",
		items:  3, bad: 2, code: 5, ended: 3, reduced: true,
		says: "1 succeeded, 2 dead",
	},
	"a flag before the file": {
		policy: "on_item_failure: skip",
		items:  3, bad: 1, flags: []string{"--on-item-failure", "dlq"}, code: 5, ended: 3, reduced: true,
		says: "2 succeeded, 1 dead",
	},
	"continue_on_failure: true": {
		policy: "continue_on_failure: true",
		items:  3, bad: 1, code: 5, ended: 3, reduced: true,
		says: "2 succeeded, 1 dead",
	},
	"continue_on_failure: false": {
		policy: "continue_on_failure: false",
		items:  3, bad: 1, code: 7, ended: 1,
		says: "1 dead, 2 unfinished",
	},
	"max_failures, reached": {
		policy: "max_failures: 2",
		items:  4, bad: 3, code: 7, ended: 2,
		says: "--stop-after is 2",
	},
	"max_failures, not reached": {
		policy: "max_failures: 2",
		items:  4, bad: 1, code: 5, ended: 4, reduced: true,
		says: "3 succeeded, 1 dead",
	},
	"max_failures, and a flag": {
		policy: "max_failures: 1",
		items:  4, bad: 2, flags: []string{"--stop-after", "3"}, code: 5, ended: 4, reduced: true,
		says: "2 succeeded, 2 dead",
	},
	"failure_threshold, equal": {
		policy: "failure_threshold: 0.2",
		items:  10, bad: 2, code: 5, ended: 10, reduced: true,
		says: "8 succeeded, 2 dead",
	},
	"failure_threshold, over": {
		policy: "failure_threshold: 0.2",
		items:  12, bad: 3, code: 7, ended: 10,
		says: "--stop-after is 20%",
	},
	"failure_threshold of few": {
		policy: "failure_threshold: 0.2",
		items:  9, bad: 9, code: 5, ended: 9, reduced: true,
		says: "0 succeeded, 9 dead",
	},
	"both": {
		policy: "failure_threshold: 0.5\nmax_failures: 2",
		items:  4, bad: 4, code: 7, ended: 2,
		says: "--stop-after is 2 and 50%",
	},
	"reduce not with letters": {
		inReduce: "with_letters: false",
		items:    3, bad: 1, code: 5, ended: 3,
		says: "reduce did not run: 1 item dead, and with_letters is false",
	},
	"reduce without letters": {
		inReduce: "with_letters: false",
		items:    3, ended: 3, reduced: true,
		says: "3 succeeded",
	},
	"reduce fails": {
		items: 2, reduces: "exit 4", code: 5, ended: 2, reduced: true,
		says: "reduce  dead",
	},
	"reduce fails, and is merged": {
		items: 2, reduces: "exit 4", flags: []string{"--merge"}, code: 5, ended: 2, reduced: true,
		says: "is not merged: reduce is dead",
	},
	"chosen items": {
		inMap: "filter: n > 0\n  sort_by: n DESC\n  max_items: 2",
		items: 9, bad: 8, code: 5, ended: 2, reduced: true,
		says: "1 succeeded, 1 dead",
	},
	"chosen items, and a flag": {
		inMap: "filter: n > 0\n  max_items: 2",
		items: 9, bad: 0, flags: []string{"--max-items", "3"}, ended: 3, reduced: true,
		says: "3 succeeded",
	},
}

// Each policy of a file, with each outcome: how the run ends, and whether it reduces.
func TestWorkflowPolicies(t *testing.T) {
	t.Parallel()
	for name, tc := range policyCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			text := strings.NewReplacer("POLICY", tc.policy, "ITEMS", fmt.Sprint(tc.items), "BAD", fmt.Sprint(tc.bad),
				"REDUCES", tc.reduces, "REDUCE", tc.inReduce, "MAP", tc.inMap).Replace(policied)
			d.workflow(1, text)
			said := d.nixie(tc.code, flowRun(tc.flags...)...)
			if !strings.Contains(said.err, tc.says) {
				t.Errorf("no %q in %s", tc.says, said.err)
			}
			if ran := times(d.ledger("ledger")); ran["item"] != tc.ended || ran["reduce"] > 0 != tc.reduced {
				t.Errorf("ran: %v", ran)
			}
			d.verify()
		})
	}
}

// What takes too long, or fails in setup, is a letter with its reason, and nothing comes after it.
func TestWorkflowEndsEarly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text, reason, says string
		ran                map[string]int
	}{
		"setup fails": {`{setup: [{shell: echo setup >> LEDGER; exit 3}], map: {input: x.json, agent_template: [{shell: "true"}]},
  reduce: [{shell: echo reduce >> LEDGER}]}`, "command-failed", "setup   dead\n", map[string]int{"setup": 1}},
		"setup takes too long": {`{setup: {timeout: 1s, commands: [{shell: echo setup >> LEDGER; sleep 60}]},
  map: {input: x.json, agent_template: [{shell: "true"}]}}`, "timeout", "setup   dead\n", map[string]int{"setup": 1}},
		"an item takes too long": {`{setup: [{shell: 'echo {\"id\":1} > x.jsonl'}],
  map: {input: x.jsonl, agent_timeout_secs: 1, agent_template: [{shell: echo item >> LEDGER}, {shell: sleep 60}]}}`,
			"timeout", "0 succeeded, 1 dead", map[string]int{"item": 1}},
		"merge fails": {`{setup: [{shell: 'echo {\"id\":1} > x.jsonl; git add x.jsonl; git commit -qm x'}],
  map: {input: x.jsonl, agent_template: [{shell: echo item >> LEDGER}]}, merge: [{shell: echo merge >> LEDGER; exit 3}]}`,
			"command-failed", "merge   dead\n", map[string]int{"item": 1, "merge": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.workflow(1, tc.text)
			said := d.nixie(5, flowRun("--merge", "--job", "j")...)
			if !strings.Contains(said.err, tc.says) {
				t.Errorf("no %q in %s", tc.says, said.err)
			}
			if letters := d.decodeLetters(d.nixie(0, "map", "dlq", "list", "--job", "j", "-o", "jsonl")); len(letters) != 1 ||
				letters[0].Reason != tc.reason {
				t.Errorf("letters: %+v", letters)
			}
			if ran := times(d.ledger("ledger")); fmt.Sprint(ran) != fmt.Sprint(tc.ran) {
				t.Errorf("ran: %v", ran)
			}
			d.nixie(5, "map", "resume", "--job", "j") // what is dead waits for a redrive
			if ran := times(d.ledger("ledger")); fmt.Sprint(ran) != fmt.Sprint(tc.ran) {
				t.Errorf("ran after the resume: %v", ran)
			}
			d.noProcess()
			d.verify()
		})
	}
}
