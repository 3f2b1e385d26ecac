package main

// ofLoops breaks loops and what is told of them.
var ofLoops = []mutant{
	{number: 196, name: "a notice of a purged letter is handled", breaks: "a person is told of a death whose letter is gone",
		tests: finder{"loop", "^Test(NoticesOfLettersThatMovedOn|ModelOfNoticesAndLetters)$"},
		edits: []edit{{"loop/notices.go", "over: c.stored}", "over: false}"}}},
	{number: 197, name: "a replay counts twice", breaks: "the metrics have more replays than there were",
		tests: finder{"loop", "^TestTelemetryOfAConsumer$"},
		edits: []edit{{"telemetry/otel.go", "counted && n.Action == nixie.ActionReplay", "counted && n.Action == \"\""}}},
	{number: 198, name: "a depth at its threshold is healthy", breaks: "the health port hides a mailbox that is as full as it may be",
		tests: finder{"loop", "^TestR60_HealthWithChecks$"},
		edits: []edit{{"loop/health.go", "h.DLQ.Depth >= h.DLQ.Threshold", "h.DLQ.Depth > h.DLQ.Threshold"}}},
	{number: 199, name: "a drain waits for more work", breaks: "a drain ends seconds after its last item",
		tests: finder{"worker", "^TestUntil$"},
		edits: []edit{{"worker/receive.go", "!w.c.Until.Idle || !tells", "!w.c.Until.Idle || !tells || true"}}},
}
