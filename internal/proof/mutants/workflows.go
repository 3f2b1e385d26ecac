package main

// ofWorkflows has mutants of workflow files and their steps.
var ofWorkflows = []mutant{
	{number: 227, name: "a bare value in a script is not quoted", breaks: "a shell splits what an item holds",
		tests: finder{"internal/command", "^TestScripts$"},
		edits: []edit{{"internal/command/script.go", "b.WriteString(`\"` + u.words() + `\"`)\n", "b.WriteString(u.words())\n"},
			{"internal/command/script.go", "	if proven != uses {", "	if proven > uses {"}}},
	{number: 228, name: "captures are not handed on", breaks: "what a phase captured is lost with it, and over a resume",
		tests: finder{"internal/workflow", "^TestValuesOfPhases$"},
		edits: []edit{{"internal/runner/values.go", "made := maps.Clone(a.known.made)", "made := map[string]json.RawMessage{}"}}},
	{number: 229, name: "failure_threshold is reached and not passed", breaks: "a job stops at a share of dead that its file allows",
		tests: finder{"internal/runner", "^TestStopAfterIsReached$"},
		edits: []edit{{"internal/runner/end.go", "redrive.Exceeds(dead, ended, s.Share)",
			"(redrive.Exceeds(dead, ended, s.Share) || float64(dead) == s.Share*float64(ended))"}}},
	{number: 237, name: "a reduce runs once only", breaks: "what a reduce reports is out of date in silence",
		tests: finder{"internal/cli", "^TestWorkflowFileOfAJob$"},
		edits: []edit{{"mapreduce/results.go", "fmt.Sprintf(\"%s %d of %d\", Reduce, c.Successful, c.Total)", "Reduce"}}},
	{number: 238, name: "a repeated reduce finds half a change", breaks: "a reduce that was killed reports something else",
		tests: finder{"internal/cli", "^TestWorkflowLeavesFiles$"},
		edits: []edit{{"mapreduce/worktree/phase.go", "\"--quiet\", \"--force\", \"--detach\"", "\"--quiet\", \"--detach\""}}},
	{number: 239, name: "a file wins over a flag", breaks: "what a user types has no effect",
		tests: finder{"internal/cli", "^TestWorkflowPolicies$"},
		edits: []edit{{"internal/cli/map_workflow.go", " && !w.m.flags.Changed(flag)", ""}}},
}
