package workflow

import "slices"

// Field is a key of the language.
type Field struct {
	In      string // the block that has it; see [Blocks]
	Name    string
	Refused string // why there is no such thing; empty: it works
	Does    string // what it does
}

// Test names the test that fails if the field is ignored; a field that is refused has none.
func (f *Field) Test() string {
	if !f.Works() {
		return ""
	}
	return "TestFields/" + f.In + "." + f.Name
}

// Works reports whether the field does what it says.
func (f *Field) Works() bool { return f.Refused == "" }

// Blocks of a file, in the order of the document.
const (
	inFile     = "file"
	inSetup    = "setup"
	inMap      = "map"
	inReduce   = "reduce"
	inMerge    = "merge"
	inPolicy   = "error_policy"
	inBreaker  = "circuit_breaker"
	inTimeouts = "timeout_config"
	inStep     = "step"
	inHandler  = "on_failure"
	inValidate = "validate"
	inMissing  = "on_incomplete"
	inRetry    = "retry"
)

// Blocks lists the blocks in the order of the document.
func Blocks() []string {
	return []string{inFile, inSetup, inMap, inReduce, inMerge, inPolicy, inBreaker, inTimeouts, inStep, inHandler, inValidate, inMissing,
		inRetry}
}

// Fields lists the whole language.
func Fields() []Field { return slices.Clone(fields) }

// fieldsOf lists the fields of a block.
func fieldsOf(block string) []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return f.In != block })
}

const (
	noCost     = "costs are not counted: bound the work by max_items, max_attempts and times"
	noHandlers = "one failure has one handler: write it under on_failure"
	notMeant   = "a file has setup, map, reduce and merge, and no graph of jobs"
	absent     = "it is not there"
)

// fields is the table.
var fields = []Field{
	{In: inFile, Name: "name", Does: "names the job, unless --job does"},
	{In: inFile, Name: "mode", Does: "mapreduce, or standard for a plain list of steps; it has to fit what the file has"},
	{In: inFile, Name: "env", Does: "variables of all steps; their values are texts of the file"},
	{In: inFile, Name: "agent_command", Does: "program and first arguments of claude steps; otherwise $NIXIE_AGENT, otherwise claude -p"},
	{In: inFile, Name: "setup", Does: "steps before the items are read; a list, or a block"},
	{In: inFile, Name: "map", Does: "the items, and the steps for each"},
	{In: inFile, Name: "reduce", Does: "steps after all items; a list, or a block"},
	{In: inFile, Name: "merge", Does: "steps of nixie map merge instead of git's merge; a list, or a block"},
	{In: inFile, Name: "commands", Does: "the steps of a file that has no map; the file may be the list itself"},
	{In: inFile, Name: "error_policy", Does: "what becomes of items that fail"},
	{In: inFile, Name: "on_item_failure", Does: "as in error_policy"},
	{In: inFile, Name: "continue_on_failure", Does: "as in error_policy"},
	{In: inFile, Name: "max_failures", Does: "as in error_policy"},
	{In: inFile, Name: "failure_threshold", Does: "as in error_policy"},
	{In: inFile, Name: "error_collection", Does: "as in error_policy"},
	{In: inFile, Name: "secrets",
		Refused: "secrets do not lie in files that are committed: give them in the environment of nixie, and --mask hides them"},
	{In: inFile, Name: "env_files", Refused: "write env, or set the variables where nixie is started"},
	{In: inFile, Name: "profiles", Refused: "write env, or one file for each profile"},
	{In: inFile, Name: "checkpoint", Refused: "each item is kept when it ends; there is nothing to set"},
	{In: inFile, Name: "retry_defaults", Refused: "write retry at the steps that should have it"},
	{In: inFile, Name: "max_cost", Refused: noCost},
	{In: inFile, Name: "storage", Refused: "--store names the store"},
	{In: inFile, Name: "imports", Refused: notMeant},
	{In: inFile, Name: "templates", Refused: notMeant},
	{In: inFile, Name: "extends", Refused: notMeant},
	{In: inFile, Name: "parameters", Refused: "write env, and change it by hand"},
	{In: inFile, Name: "sub_workflows", Refused: notMeant},

	{In: inSetup, Name: "commands", Does: "the steps"},
	{In: inSetup, Name: "timeout", Does: "ends the phase after this time, in seconds or as 5m"},
	{In: inSetup, Name: "capture_outputs", Refused: "write capture: NAME at the step whose output it is"},

	{In: inMap, Name: "input", Does: "file with the items, read after setup"},
	{In: inMap, Name: "json_path", Does: "where the items are in a JSON document, as --json-path"},
	{In: inMap, Name: "agent_template", Does: "the steps for each item; a list, or a block with commands"},
	{In: inMap, Name: "max_parallel", Does: "items at once; a number, or a variable of env"},
	{In: inMap, Name: "filter", Does: "only items for which it holds; a bare name is a field of the item"},
	{In: inMap, Name: "sort_by", Does: "order of the items, as --sort-by"},
	{In: inMap, Name: "distinct", Does: "of items with the same value in this field only the first"},
	{In: inMap, Name: "offset", Does: "leaves out this many items"},
	{In: inMap, Name: "max_items", Does: "takes at most this many items"},
	{In: inMap, Name: "agent_timeout_secs", Does: "ends the steps of one item after this time"},
	{In: inMap, Name: "timeout_config", Does: "the same, and times for kinds of steps"},
	{In: inMap, Name: "on_item_failure", Does: "as in error_policy"},
	{In: inMap, Name: "max_cost", Refused: noCost},
	{In: inMap, Name: "variables", Refused: "aggregates are not there: compute them in reduce"},
	{In: inMap, Name: "validation", Refused: "schemas are not there: check the list in setup"},
	{In: inMap, Name: "retry_on_failure", Refused: "write retry at a step, or --max-attempts"},

	{In: inReduce, Name: "commands", Does: "the steps"},
	{In: inReduce, Name: "timeout", Does: "ends the phase after this time"},
	{In: inReduce, Name: "with_letters", Does: "false: reduce does not run while items are dead; true, the default, runs it and says so"},

	{In: inMerge, Name: "commands", Does: "the steps"},
	{In: inMerge, Name: "timeout", Does: "ends the phase after this time"},

	{In: inPolicy, Name: "on_item_failure", Does: "dlq, the default, retry, skip, stop, or custom:COMMAND, as --on-item-failure"},
	{In: inPolicy, Name: "continue_on_failure", Does: "false: the job stops at the first item that dies"},
	{In: inPolicy, Name: "max_failures", Does: "stops the job once this many items died"},
	{In: inPolicy, Name: "failure_threshold", Does: "stops the job once more than this part of at least ten items died, as 0.2 or 20%"},
	{In: inPolicy, Name: "circuit_breaker", Does: "pauses the job while items fail in a row"},
	{In: inPolicy, Name: "error_collection", Does: "aggregate: failures are told at the end, in groups; nothing else is there"},
	{In: inPolicy, Name: "retry_config", Refused: absent + ": write retry at a step, or --max-attempts and --backoff"},

	{In: inBreaker, Name: "failure_threshold", Does: "opens it after this many failures in a row"},
	{In: inBreaker, Name: "success_threshold", Does: "closes it after this many successes"},
	{In: inBreaker, Name: "timeout", Does: "how long it stays open"},
	{In: inBreaker, Name: "half_open_requests", Does: "items at once that try whether it may close"},

	{In: inTimeouts, Name: "agent_timeout_secs", Does: "as in map"},
	{In: inTimeouts, Name: "command_timeouts", Does: "times of steps by their kind: shell, exec, agent, claude"},
	{In: inTimeouts, Name: "timeout_policy", Refused: "both times hold: that of the item and that of the step"},
	{In: inTimeouts, Name: "timeout_action", Refused: "a timeout is a failure, and on_item_failure says what becomes of it"},
	{In: inTimeouts, Name: "cleanup_grace_period_secs", Refused: "a process has 2 s from the signal to its end"},
	{In: inTimeouts, Name: "enable_monitoring", Refused: "nixie map show tells what runs"},

	{In: inStep, Name: "shell", Does: "a script for sh -c, which gets values as variables"},
	{In: inStep, Name: "exec", Does: "a program and arguments, with quotes and without a shell"},
	{In: inStep, Name: "agent", Does: "likewise, with a log that is kept with a failure"},
	{In: inStep, Name: "claude", Does: "a text for the agent: the last argument of agent_command"},
	{In: inStep, Name: "name", Does: "names the step in failures"},
	{In: inStep, Name: "id", Does: "likewise, and its output is ${ID.output}"},
	{In: inStep, Name: "env", Does: "variables of the step; their values may have values"},
	{In: inStep, Name: "working_dir", Does: "a folder in the worktree"},
	{In: inStep, Name: "timeout", Does: "ends one run after this time, in seconds or as 5m"},
	{In: inStep, Name: "when", Does: "runs it only if the condition holds"},
	{In: inStep, Name: "capture", Does: "its standard output is ${NAME}"},
	{In: inStep, Name: "capture_output", Does: "likewise; true: ${shell.output}"},
	{In: inStep, Name: "capture_format", Does: "string, the default, or json, which has fields as ${NAME.field}"},
	{In: inStep, Name: "commit_required", Does: "it fails unless it commits"},
	{In: inStep, Name: "on_success", Does: "steps after it has succeeded"},
	{In: inStep, Name: "on_failure", Does: "steps after it has failed; then it runs again"},
	{In: inStep, Name: "retry", Does: "runs it again while its item is held"},
	{In: inStep, Name: "validate", Does: "measures how complete its work is"},
	{In: inStep, Name: "test", Refused: "write shell, with on_failure"},
	{In: inStep, Name: "foreach", Refused: absent + ": write a map"},
	{In: inStep, Name: "goal_seek", Refused: absent + ": write validate with on_incomplete"},
	{In: inStep, Name: "write_file", Refused: "write a shell step: printf '%s' \"${item.text}\" > file"},
	{In: inStep, Name: "analyze", Refused: "write an agent step"},
	{In: inStep, Name: "command", Refused: "write shell, exec, agent or claude, for what runs it"},
	{In: inStep, Name: "args", Refused: "write the arguments after the program"},
	{In: inStep, Name: "outputs", Refused: "write capture: NAME"},
	{In: inStep, Name: "capture_streams", Refused: "standard output is captured; write 2>&1 in a shell step for both"},
	{In: inStep, Name: "output_file", Refused: "write > file in a shell step"},
	{In: inStep, Name: "auto_commit", Refused: absent + ": let a step commit"},
	{In: inStep, Name: "commit_config", Refused: absent + ": let a step commit"},
	{In: inStep, Name: "on_exit_code", Refused: noHandlers},
	{In: inStep, Name: "continue_on_error", Refused: "write on_failure with fail_workflow: false"},

	{In: inHandler, Name: "shell", Does: "the handler is this one step; likewise exec, agent and claude"},
	{In: inHandler, Name: "exec", Does: "likewise"},
	{In: inHandler, Name: "agent", Does: "likewise"},
	{In: inHandler, Name: "claude", Does: "likewise"},
	{In: inHandler, Name: "commands", Does: "the handler is these steps"},
	{In: inHandler, Name: "max_attempts", Does: "runs of the handler, each with a run of the step after it; 1"},
	{In: inHandler, Name: "fail_workflow", Does: "false: work goes on though no run helped; true, the default: the step has failed"},
	{In: inHandler, Name: "commit_required", Does: "each run of the handler has to commit"},
	{In: inHandler, Name: "timeout", Does: "ends each step of the handler after this time"},
	{In: inHandler, Name: "max_retries", Refused: "write max_attempts"},
	{In: inHandler, Name: "strategy", Refused: "the step runs again after its handler; fail_workflow says what follows"},
	{In: inHandler, Name: "handler_failure_fatal", Refused: "a handler that fails has not helped, and fail_workflow says what follows"},
	{In: inHandler, Name: "capture", Refused: "write capture at a step of the handler"},

	{In: inValidate, Name: "shell", Does: "the measuring step; likewise exec, agent and claude"},
	{In: inValidate, Name: "exec", Does: "likewise"},
	{In: inValidate, Name: "agent", Does: "likewise"},
	{In: inValidate, Name: "claude", Does: "likewise"},
	{In: inValidate, Name: "commands", Does: "the measuring steps"},
	{In: inValidate, Name: "threshold", Does: "percent of completion_percentage that are complete; 100"},
	{In: inValidate, Name: "result_file", Does: "the JSON with completion_percentage, and gaps; otherwise standard output"},
	{In: inValidate, Name: "timeout", Does: "ends each measuring step after this time"},
	{In: inValidate, Name: "on_incomplete", Does: "steps that complete the work; then it is measured again"},
	{In: inValidate, Name: "expected_schema", Refused: "schemas are not there"},

	{In: inMissing, Name: "shell", Does: "one completing step; likewise exec, agent and claude"},
	{In: inMissing, Name: "exec", Does: "likewise"},
	{In: inMissing, Name: "agent", Does: "likewise"},
	{In: inMissing, Name: "claude", Does: "likewise; ${validation.gaps} is what is missing"},
	{In: inMissing, Name: "commands", Does: "the completing steps"},
	{In: inMissing, Name: "max_attempts", Does: "runs of them; 1"},
	{In: inMissing, Name: "fail_workflow", Does: "false: work goes on though it is incomplete; true is the default"},
	{In: inMissing, Name: "commit_required", Does: "each run has to commit"},
	{In: inMissing, Name: "timeout", Does: "ends each step after this time"},
	{In: inMissing, Name: "strategy", Refused: "the steps say how"},
	{In: inMissing, Name: "prompt", Refused: "a job that runs asks no person"},

	{In: inRetry, Name: "attempts", Does: "runs, the first included"},
	{In: inRetry, Name: "max_attempts", Does: "likewise"},
	{In: inRetry, Name: "backoff", Does: "fixed, linear, exponential, the default, or fibonacci"},
	{In: inRetry, Name: "initial_delay", Does: "wait after the first run; 1s"},
	{In: inRetry, Name: "max_delay", Does: "the longest wait; 30s"},
	{In: inRetry, Name: "increment", Does: "growth of linear waits"},
	{In: inRetry, Name: "base", Does: "factor of exponential waits; 2"},
	{In: inRetry, Name: "jitter", Does: "true: waits vary by a part of them"},
	{In: inRetry, Name: "jitter_factor", Does: "this part; 0.3"},
	{In: inRetry, Name: "retry_budget", Does: "no run begins later than this after the first began"},
	{In: inRetry, Name: "retry_on", Refused: "the policy knows what may pass: exit codes, verdicts and texts"},
	{In: inRetry, Name: "on_failure", Refused: noHandlers},
}
