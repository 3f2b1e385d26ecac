package workflow

import "slices"

// Field is a key of the language.
type Field struct {
	In      string // the block that has it; see [Blocks]
	Name    string
	Refused string // why there is no such thing; empty: it works
	Does    string // what it does
	Test    string // that fails if the field is ignored
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
	return []string{inFile, inSetup, inMap, inReduce, inMerge, inPolicy, inBreaker, inTimeouts, inStep, inHandler, inValidate, inMissing, inRetry}
}

// Fields lists the whole language.
func Fields() []Field { return slices.Clone(fields) }

// fieldsOf lists the fields of a block.
func fieldsOf(block string) []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return f.In != block })
}

const (
	noHandlers = "one failure has one handler: write it under on_failure"
	notMeant   = "a file has setup, map, reduce and merge, and no graph of jobs"
	nobody     = "no workflow that was found in the wild uses it"
)

// fields is the table.
var fields = []Field{
	{In: inFile, Name: "name", Does: "names the job, unless --job does", Test: "TestFields/file.name"},
	{In: inFile, Name: "mode", Does: "mapreduce, or standard for a plain list of steps; it has to fit what the file has", Test: "TestFields/file.mode"},
	{In: inFile, Name: "env", Does: "variables of all steps; their values are texts of the file", Test: "TestFields/file.env"},
	{In: inFile, Name: "agent_command", Does: "program and first arguments of claude steps; otherwise $NIXIE_AGENT, otherwise claude -p", Test: "TestFields/file.agent_command"},
	{In: inFile, Name: "setup", Does: "steps before the items are read; a list, or a block", Test: "TestFields/file.setup"},
	{In: inFile, Name: "map", Does: "the items, and the steps for each", Test: "TestFields/file.map"},
	{In: inFile, Name: "reduce", Does: "steps after all items; a list, or a block", Test: "TestFields/file.reduce"},
	{In: inFile, Name: "merge", Does: "steps of nixie map merge instead of git's merge; a list, or a block", Test: "TestFields/file.merge"},
	{In: inFile, Name: "commands", Does: "the steps of a file that has no map; the file may be the list itself", Test: "TestFields/file.commands"},
	{In: inFile, Name: "error_policy", Does: "what becomes of items that fail", Test: "TestFields/file.error_policy"},
	{In: inFile, Name: "on_item_failure", Does: "as in error_policy", Test: "TestFields/file.on_item_failure"},
	{In: inFile, Name: "continue_on_failure", Does: "as in error_policy", Test: "TestFields/file.continue_on_failure"},
	{In: inFile, Name: "max_failures", Does: "as in error_policy", Test: "TestFields/file.max_failures"},
	{In: inFile, Name: "failure_threshold", Does: "as in error_policy", Test: "TestFields/file.failure_threshold"},
	{In: inFile, Name: "error_collection", Does: "as in error_policy", Test: "TestFields/file.error_collection"},
	{In: inFile, Name: "secrets", Refused: "secrets do not lie in files that are committed: give them in the environment of nixie, and --mask hides them"},
	{In: inFile, Name: "env_files", Refused: "write env, or set the variables where nixie is started"},
	{In: inFile, Name: "profiles", Refused: "write env, or one file for each profile"},
	{In: inFile, Name: "checkpoint", Refused: "each item is kept when it ends; there is nothing to set"},
	{In: inFile, Name: "retry_defaults", Refused: "write retry at the steps that should have it"},
	{In: inFile, Name: "storage", Refused: "--store names the store"},
	{In: inFile, Name: "imports", Refused: notMeant},
	{In: inFile, Name: "templates", Refused: notMeant},
	{In: inFile, Name: "extends", Refused: notMeant},
	{In: inFile, Name: "parameters", Refused: "write env, and change it by hand"},
	{In: inFile, Name: "sub_workflows", Refused: notMeant},

	{In: inSetup, Name: "commands", Does: "the steps", Test: "TestFields/setup.commands"},
	{In: inSetup, Name: "timeout", Does: "ends the phase after this time, in seconds or as 5m", Test: "TestFields/setup.timeout"},
	{In: inSetup, Name: "capture_outputs", Refused: "write capture: NAME at the step whose output it is"},

	{In: inMap, Name: "input", Does: "file with the items, read after setup", Test: "TestFields/map.input"},
	{In: inMap, Name: "json_path", Does: "where the items are in a JSON document, as --json-path", Test: "TestFields/map.json_path"},
	{In: inMap, Name: "agent_template", Does: "the steps for each item; a list, or a block with commands", Test: "TestFields/map.agent_template"},
	{In: inMap, Name: "max_parallel", Does: "items at once; a number, or a variable of env", Test: "TestFields/map.max_parallel"},
	{In: inMap, Name: "filter", Does: "only items for which it holds; a bare name is a field of the item", Test: "TestFields/map.filter"},
	{In: inMap, Name: "sort_by", Does: "order of the items, as --sort-by", Test: "TestFields/map.sort_by"},
	{In: inMap, Name: "distinct", Does: "of items with the same value in this field only the first", Test: "TestFields/map.distinct"},
	{In: inMap, Name: "offset", Does: "leaves out this many items", Test: "TestFields/map.offset"},
	{In: inMap, Name: "max_items", Does: "takes at most this many items", Test: "TestFields/map.max_items"},
	{In: inMap, Name: "agent_timeout_secs", Does: "ends the steps of one item after this time", Test: "TestFields/map.agent_timeout_secs"},
	{In: inMap, Name: "timeout_config", Does: "the same, and times for kinds of steps", Test: "TestFields/map.timeout_config"},
	{In: inMap, Name: "on_item_failure", Does: "as in error_policy", Test: "TestFields/map.on_item_failure"},
	{In: inMap, Name: "variables", Refused: "aggregates: " + nobody + "; compute them in reduce"},
	{In: inMap, Name: "validation", Refused: "schemas: " + nobody + "; check the list in setup"},
	{In: inMap, Name: "retry_on_failure", Refused: "write retry at a step, or --max-attempts"},

	{In: inReduce, Name: "commands", Does: "the steps", Test: "TestFields/reduce.commands"},
	{In: inReduce, Name: "timeout", Does: "ends the phase after this time", Test: "TestFields/reduce.timeout"},
	{In: inReduce, Name: "with_letters", Does: "false: reduce does not run while items are dead; true, the default, runs it and says so", Test: "TestFields/reduce.with_letters"},

	{In: inMerge, Name: "commands", Does: "the steps", Test: "TestFields/merge.commands"},
	{In: inMerge, Name: "timeout", Does: "ends the phase after this time", Test: "TestFields/merge.timeout"},

	{In: inPolicy, Name: "on_item_failure", Does: "dlq, the default, retry, skip, stop, or custom:COMMAND, as --on-item-failure", Test: "TestFields/error_policy.on_item_failure"},
	{In: inPolicy, Name: "continue_on_failure", Does: "false: the job stops at the first item that dies", Test: "TestFields/error_policy.continue_on_failure"},
	{In: inPolicy, Name: "max_failures", Does: "stops the job once this many items died", Test: "TestFields/error_policy.max_failures"},
	{In: inPolicy, Name: "failure_threshold", Does: "stops the job once more than this part of at least ten items died, as 0.2 or 20%", Test: "TestFields/error_policy.failure_threshold"},
	{In: inPolicy, Name: "circuit_breaker", Does: "pauses the job while items fail in a row", Test: "TestFields/error_policy.circuit_breaker"},
	{In: inPolicy, Name: "error_collection", Does: "aggregate: failures are told at the end, in groups; nothing else is there", Test: "TestFields/error_policy.error_collection"},
	{In: inPolicy, Name: "retry_config", Refused: nobody + ": write retry at a step, or --max-attempts and --backoff"},

	{In: inBreaker, Name: "failure_threshold", Does: "opens it after this many failures in a row", Test: "TestFields/circuit_breaker.failure_threshold"},
	{In: inBreaker, Name: "success_threshold", Does: "closes it after this many successes", Test: "TestFields/circuit_breaker.success_threshold"},
	{In: inBreaker, Name: "timeout", Does: "how long it stays open", Test: "TestFields/circuit_breaker.timeout"},
	{In: inBreaker, Name: "half_open_requests", Does: "items at once that try whether it may close", Test: "TestFields/circuit_breaker.half_open_requests"},

	{In: inTimeouts, Name: "agent_timeout_secs", Does: "as in map", Test: "TestFields/timeout_config.agent_timeout_secs"},
	{In: inTimeouts, Name: "command_timeouts", Does: "times of steps by their kind: shell, exec, agent, claude", Test: "TestFields/timeout_config.command_timeouts"},
	{In: inTimeouts, Name: "timeout_policy", Refused: "both times hold: that of the item and that of the step"},
	{In: inTimeouts, Name: "timeout_action", Refused: "a timeout is a failure, and on_item_failure says what becomes of it"},
	{In: inTimeouts, Name: "cleanup_grace_period_secs", Refused: "a process has 2 s from the signal to its end"},
	{In: inTimeouts, Name: "enable_monitoring", Refused: "nixie map show tells what runs"},

	{In: inStep, Name: "shell", Does: "a script for sh -c, which gets values as variables", Test: "TestFields/step.shell"},
	{In: inStep, Name: "exec", Does: "a program and arguments, with quotes and without a shell", Test: "TestFields/step.exec"},
	{In: inStep, Name: "agent", Does: "likewise, with a log that is kept with a failure", Test: "TestFields/step.agent"},
	{In: inStep, Name: "claude", Does: "a text for the agent: the last argument of agent_command", Test: "TestFields/step.claude"},
	{In: inStep, Name: "name", Does: "names the step in failures", Test: "TestFields/step.name"},
	{In: inStep, Name: "id", Does: "likewise, and its output is ${ID.output}", Test: "TestFields/step.id"},
	{In: inStep, Name: "env", Does: "variables of the step; their values may have values", Test: "TestFields/step.env"},
	{In: inStep, Name: "working_dir", Does: "a folder in the worktree", Test: "TestFields/step.working_dir"},
	{In: inStep, Name: "timeout", Does: "ends one run after this time, in seconds or as 5m", Test: "TestFields/step.timeout"},
	{In: inStep, Name: "when", Does: "runs it only if the condition holds", Test: "TestFields/step.when"},
	{In: inStep, Name: "capture", Does: "its standard output is ${NAME}", Test: "TestFields/step.capture"},
	{In: inStep, Name: "capture_output", Does: "likewise; true: ${shell.output}", Test: "TestFields/step.capture_output"},
	{In: inStep, Name: "capture_format", Does: "string, the default, or json, which has fields as ${NAME.field}", Test: "TestFields/step.capture_format"},
	{In: inStep, Name: "commit_required", Does: "it fails unless it commits", Test: "TestFields/step.commit_required"},
	{In: inStep, Name: "on_success", Does: "steps after it has succeeded", Test: "TestFields/step.on_success"},
	{In: inStep, Name: "on_failure", Does: "steps after it has failed; then it runs again", Test: "TestFields/step.on_failure"},
	{In: inStep, Name: "retry", Does: "runs it again while its item is held", Test: "TestFields/step.retry"},
	{In: inStep, Name: "validate", Does: "measures how complete its work is", Test: "TestFields/step.validate"},
	{In: inStep, Name: "test", Refused: "write shell, with on_failure"},
	{In: inStep, Name: "foreach", Refused: nobody + ": write a map"},
	{In: inStep, Name: "goal_seek", Refused: nobody + ": write validate with on_incomplete"},
	{In: inStep, Name: "write_file", Refused: "write a shell step: printf '%s' \"${item.text}\" > file"},
	{In: inStep, Name: "analyze", Refused: "write an agent step"},
	{In: inStep, Name: "command", Refused: "write shell, exec, agent or claude, for what runs it"},
	{In: inStep, Name: "args", Refused: "write the arguments after the program"},
	{In: inStep, Name: "outputs", Refused: "write capture: NAME"},
	{In: inStep, Name: "capture_streams", Refused: "standard output is captured; write 2>&1 in a shell step for both"},
	{In: inStep, Name: "output_file", Refused: "write > file in a shell step"},
	{In: inStep, Name: "auto_commit", Refused: nobody + ": let a step commit"},
	{In: inStep, Name: "commit_config", Refused: nobody + ": let a step commit"},
	{In: inStep, Name: "on_exit_code", Refused: noHandlers},
	{In: inStep, Name: "continue_on_error", Refused: "write on_failure with fail_workflow: false"},

	{In: inHandler, Name: "shell", Does: "the handler is this one step; likewise exec, agent and claude", Test: "TestFields/on_failure.shell"},
	{In: inHandler, Name: "exec", Does: "likewise", Test: "TestFields/on_failure.exec"},
	{In: inHandler, Name: "agent", Does: "likewise", Test: "TestFields/on_failure.agent"},
	{In: inHandler, Name: "claude", Does: "likewise", Test: "TestFields/on_failure.claude"},
	{In: inHandler, Name: "commands", Does: "the handler is these steps", Test: "TestFields/on_failure.commands"},
	{In: inHandler, Name: "max_attempts", Does: "runs of the handler, each with a run of the step after it; 1", Test: "TestFields/on_failure.max_attempts"},
	{In: inHandler, Name: "fail_workflow", Does: "false: work goes on though no run helped; true, the default: the step has failed", Test: "TestFields/on_failure.fail_workflow"},
	{In: inHandler, Name: "commit_required", Does: "each run of the handler has to commit", Test: "TestFields/on_failure.commit_required"},
	{In: inHandler, Name: "timeout", Does: "ends each step of the handler after this time", Test: "TestFields/on_failure.timeout"},
	{In: inHandler, Name: "max_retries", Refused: "write max_attempts"},
	{In: inHandler, Name: "strategy", Refused: "the step runs again after its handler; fail_workflow says what follows"},
	{In: inHandler, Name: "handler_failure_fatal", Refused: "a handler that fails has not helped, and fail_workflow says what follows"},
	{In: inHandler, Name: "capture", Refused: "write capture at a step of the handler"},

	{In: inValidate, Name: "shell", Does: "the measuring step; likewise exec, agent and claude", Test: "TestFields/validate.shell"},
	{In: inValidate, Name: "exec", Does: "likewise", Test: "TestFields/validate.exec"},
	{In: inValidate, Name: "agent", Does: "likewise", Test: "TestFields/validate.agent"},
	{In: inValidate, Name: "claude", Does: "likewise", Test: "TestFields/validate.claude"},
	{In: inValidate, Name: "commands", Does: "the measuring steps", Test: "TestFields/validate.commands"},
	{In: inValidate, Name: "threshold", Does: "percent of completion_percentage that are complete; 100", Test: "TestFields/validate.threshold"},
	{In: inValidate, Name: "result_file", Does: "the JSON with completion_percentage, and gaps; otherwise standard output", Test: "TestFields/validate.result_file"},
	{In: inValidate, Name: "timeout", Does: "ends each measuring step after this time", Test: "TestFields/validate.timeout"},
	{In: inValidate, Name: "on_incomplete", Does: "steps that complete the work; then it is measured again", Test: "TestFields/validate.on_incomplete"},
	{In: inValidate, Name: "expected_schema", Refused: "schemas: " + nobody},

	{In: inMissing, Name: "shell", Does: "one completing step; likewise exec, agent and claude", Test: "TestFields/on_incomplete.shell"},
	{In: inMissing, Name: "exec", Does: "likewise", Test: "TestFields/on_incomplete.exec"},
	{In: inMissing, Name: "agent", Does: "likewise", Test: "TestFields/on_incomplete.agent"},
	{In: inMissing, Name: "claude", Does: "likewise; ${validation.gaps} is what is missing", Test: "TestFields/on_incomplete.claude"},
	{In: inMissing, Name: "commands", Does: "the completing steps", Test: "TestFields/on_incomplete.commands"},
	{In: inMissing, Name: "max_attempts", Does: "runs of them; 1", Test: "TestFields/on_incomplete.max_attempts"},
	{In: inMissing, Name: "fail_workflow", Does: "false: work goes on though it is incomplete; true is the default", Test: "TestFields/on_incomplete.fail_workflow"},
	{In: inMissing, Name: "commit_required", Does: "each run has to commit", Test: "TestFields/on_incomplete.commit_required"},
	{In: inMissing, Name: "timeout", Does: "ends each step after this time", Test: "TestFields/on_incomplete.timeout"},
	{In: inMissing, Name: "strategy", Refused: "the steps say how"},
	{In: inMissing, Name: "prompt", Refused: "nobody can be asked while a job runs"},

	{In: inRetry, Name: "attempts", Does: "runs, the first included", Test: "TestFields/retry.attempts"},
	{In: inRetry, Name: "max_attempts", Does: "likewise", Test: "TestFields/retry.max_attempts"},
	{In: inRetry, Name: "backoff", Does: "fixed, linear, exponential, the default, or fibonacci", Test: "TestFields/retry.backoff"},
	{In: inRetry, Name: "initial_delay", Does: "wait after the first run; 1s", Test: "TestFields/retry.initial_delay"},
	{In: inRetry, Name: "max_delay", Does: "the longest wait; 30s", Test: "TestFields/retry.max_delay"},
	{In: inRetry, Name: "increment", Does: "growth of linear waits", Test: "TestFields/retry.increment"},
	{In: inRetry, Name: "base", Does: "factor of exponential waits; 2", Test: "TestFields/retry.base"},
	{In: inRetry, Name: "jitter", Does: "true: waits vary by a part of them", Test: "TestFields/retry.jitter"},
	{In: inRetry, Name: "jitter_factor", Does: "this part; 0.3", Test: "TestFields/retry.jitter_factor"},
	{In: inRetry, Name: "retry_budget", Does: "no run begins later than this after the first began", Test: "TestFields/retry.retry_budget"},
	{In: inRetry, Name: "retry_on", Refused: "the policy knows what may pass: exit codes, verdicts and texts"},
	{In: inRetry, Name: "on_failure", Refused: noHandlers},
}
