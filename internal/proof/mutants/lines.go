package main

// ofLines has mutants of processes that stay.
var ofLines = []mutant{
	{number: 230, name: "an answer of another message is taken", breaks: "a message succeeds because another one did",
		tests: finder{"internal/cli", "^TestPersistentBadWorkers$"},
		edits: []edit{{"internal/runner/talk.go", "case answer.ID != t.d.ID.String():", "case answer.ID == \"\":"}}},
	{number: 231, name: "a message that was not read is begun", breaks: "a worker that ends between messages fails the next one",
		tests: finder{"internal/cli", "^TestPersistentUseless$"},
		edits: []edit{{"internal/runner/talk.go", "&& t.p.Unread() {", "&& false {"}}},
	{number: 232, name: "an answer after the deadline counts", breaks: "a message succeeds while its process is being ended",
		tests: finder{"internal/cli", "^TestPersistentBadWorkers$/^answers_too_late$"},
		edits: []edit{{"internal/runner/talk.go", "case !inTime():", "case false:"}}},
	{number: 233, name: "useless processes start on and on", breaks: "a worker that cannot start is started for ever",
		tests: finder{"internal/cli", "^TestPersistentUseless$"},
		edits: []edit{{"internal/runner/crew.go", "mostUseless = 5 ", "mostUseless = 50 "}}},
	{number: 234, name: "the input of a process stays open", breaks: "a worker that waits for more is killed at each stop",
		tests: finder{"internal/cli", "^TestPersistentStops$"},
		edits: []edit{{"internal/runner/crew.go", "		p.CloseInput()\n", "		_ = p\n"}}},
	{number: 235, name: "every body is text", breaks: "a body that is no text reaches a worker changed",
		tests: finder{"internal/lines", "^TestAppend$"},
		edits: []edit{{"internal/lines/lines.go", "if utf8.Valid(d.Body) {", "if true {"}}},
	{number: 236, name: "one log for all messages", breaks: "a letter shows what other messages logged",
		tests: finder{"internal/cli", "^TestPersistentBadWorkers$"},
		edits: []edit{{"internal/command/resident.go", "ring{limit: l.limit, data: l.ring.data[:0]}, pass, false", "l.ring, pass, false"}}},
}
