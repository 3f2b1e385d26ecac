package main

// ofRabbitMQ has mutants of what is taken out of queues of RabbitMQ.
var ofRabbitMQ = []mutant{
	{number: 204, name: "equal messages are one", breaks: "an office keeps one letter of a hundred equal messages, and the rest is gone",
		tests: finder{"broker/rabbitmq", "^TestLimitOfEqualLetters$"},
		edits: []edit{{"broker/rabbitmq/reader.go", `	if name == "" {
		_, _ = rand.Read(id[:]) // it never fails`, `	if name == "-" {
		_, _ = rand.Read(id[:]) // it never fails`}, {"broker/rabbitmq/reader.go", "uint64(max(at.UnixMilli(), 1))", "uint64(1)"}}},
	{number: 205, name: "the end of a wait is the cause", breaks: "letters of a cycle of retries do not tell their failure",
		tests: finder{"broker/rabbitmq", "^TestCycle$"},
		edits: []edit{{"broker/rabbitmq/death.go", "if d.Reason == rejected || d.Reason == deliveryLimit {", "if d.Reason != \"\" {"}}},
	{number: 206, name: "copies go along", breaks: "a redrive brings a second copy to another queue",
		tests: finder{"broker/rabbitmq", "^TestRedriveIsPlain$"},
		edits: []edit{{"broker/rabbitmq/codec.go", `case "CC", "BCC", `, `case `}}},
	{number: 207, name: "what is returned was stored", breaks: "a redrive to a queue that is not there is done, and the letter is gone",
		tests: finder{"broker/rabbitmq", "^TestPublishAnswersEach$"},
		edits: []edit{{"broker/rabbitmq/publish.go", "l.back[name] = true", "l.back[name] = false"}}},
	{number: 209, name: "the connection of an acknowledgement does not count", breaks: "a late acknowledgement removes another delivery",
		tests: finder{"broker/rabbitmq", "^TestLateAckAfterAReconnect$"},
		edits: []edit{{"broker/rabbitmq/driver.go", "case held.hand != now:", "case false:"},
			{"broker/rabbitmq/driver.go", "do(held.hand, held.tag)", "do(now, held.tag)"}}},
	{number: 208, name: "a letter that was cut is taken", breaks: "what an office cannot hold of a message is lost",
		tests: finder{"internal/cli", "^TestRabbitMQStories$"},
		edits: []edit{{"internal/cli/dlq_adopt.go", "a.channel.Takes && ", "false && "}}},
}
