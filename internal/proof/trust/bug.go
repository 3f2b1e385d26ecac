package trust

// bug is a defect that somebody had: a row of the list B.
type bug struct {
	number int
	where  string // project, and issue, pull request or commit there
	what   string // what happened there, in our words
	tests  string // ours that would find it
	not    string // why it has no test: it is about something that is not built, or cannot happen
}

// Why a defect has no test.
const (
	withRedis    = "later, with the store for Redis"
	withRabbit   = "later, with the connector for RabbitMQ"
	withNATS     = "later, with the connector for NATS"
	withSQS      = "later, with the connector for SQS"
	withBrokers  = "later, with the connectors"
	withConsole  = "later, with the console"
	withAPI      = "later, with the API"
	withWorktree = "later, with worktrees"
)

// bugs is the whole list, in its order.
func bugs() []bug {
	var all []bug
	for _, part := range [][]bug{
		bugsOfLeases(), bugsThatLostWork(), bugsThatStalled(), bugsOfKeys(), bugsOfAttempts(), bugsOfLetters(), bugsOfSecurity(),
	} {
		all = append(all, part...)
	}
	return all
}
