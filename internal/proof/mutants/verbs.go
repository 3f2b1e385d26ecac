package main

// ofVerbs breaks the verbs of store/engine. Both SQL stores run them, so either finds a mutant.
var ofVerbs = []mutant{
	{number: 180, name: "a key that another message holds is free", breaks: "two messages of a queue have the same dedupe key",
		tests: finder{"store/sqlite", "^TestStore$/^(Redrive|Resolve|Dedupe)$"},
		edits: []edit{{"store/engine/changes.go", "held && holder != m.Pos", "held && holder < 0"}}},
	{number: 181, name: "a discard keeps the key", breaks: "a letter that was given up refuses new messages with its key",
		tests: finder{"store/sqlite", "^TestStore$/^(Resolve|Dedupe)$"},
		edits: []edit{{"store/engine/resolve.go", "case store.OnDiscard:\n\t\tr.release(m)", "case store.OnDiscard:"}}},
	{number: 182, name: "a refused item is done", breaks: "an operation counts letters as moved that it left as they were",
		tests: finder{"store/sqlite", "^TestStore$/^(Resolve|Operations|Outcomes)$"},
		edits: []edit{{"store/engine/resolve.go", "lifecycle.ItemOf(by, err)", "lifecycle.ItemOf(by, nil)"}}},
	{number: 183, name: "an overtaken redrive waits for ever", breaks: "a redrive never ends of which a broker took a letter",
		tests: finder{"store/sqlite", "^TestStore$/^(Resolve|Outcomes)$"},
		edits: []edit{{"store/engine/resolve.go", "if was == nixie.StatusRedriving {", "if was == \"\" {"}}},
	{number: 184, name: "items keep the groups of before", breaks: "a regrouped letter that dies the same way again is a new failure",
		tests: finder{"store/sqlite", "^TestStore$/^Regroup$"},
		edits: []edit{{"store/engine/regroup.go", "if !l.Operation.IsZero() {", "if false {"}}},
	{number: 185, name: "an edit without a change is recorded", breaks: "the audit has entries for settings that stayed as they were",
		tests: finder{"store/sqlite", "^TestStore$/^Audit$"},
		edits: []edit{{"store/engine/adjust.go", "if !q.Made && *q.Settings == settings {", "if false {"}}},
}
