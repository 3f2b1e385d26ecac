package contest

// Scenario is what is measured.
type Scenario string

// The scenarios.
const (
	EnqueueOne     Scenario = "enqueue-1"       // one producer, one message a call
	EnqueueMany    Scenario = "enqueue-32"      // 32 producers, one message a call
	EnqueueBatch   Scenario = "enqueue-batch"   // one producer, as many a call as suits the library
	EnqueueBatches Scenario = "enqueue-batch-4" // four of those
	Drain          Scenario = "drain"           // all succeed, the handler does nothing
	Streams        Scenario = "streams"         // the same in 1,000 streams, each of which keeps its order
	FailsOnce      Scenario = "fails-once"      // each fails once and succeeds at once after
	DeadFew        Scenario = "dead-1"          // one of a hundred ends as a dead letter
	DeadAll        Scenario = "dead-100"        // all end as dead letters
	PickUp         Scenario = "pick-up"         // from enqueue to handler in an idle system
)

// The scenarios with a burden, each to be compared with one without.
const (
	Blocked   Scenario = "blocked"   // Streams, beside one whose head is dead and has many followers
	Scheduled Scenario = "scheduled" // Drain, beside many messages that are not due
	Foreign   Scenario = "foreign"   // Drain, while a transaction of others is open that has enqueued
)

// Numbers of producers, and of streams.
const (
	producers      = 32
	batchProducers = 4
	streams        = 1000
	foreign        = 1000 // messages of the transaction of others
	scheduled      = 10   // messages that are not due, for each one of the burden
)

// Drains reports whether messages that lie there are worked off.
func (s Scenario) Drains() bool { return !s.Enqueues() && s != PickUp }

// Enqueues reports whether producers alone are measured.
func (s Scenario) Enqueues() bool {
	return s == EnqueueOne || s == EnqueueMany || s == EnqueueBatch || s == EnqueueBatches
}

// Burdened reports whether there is something beside what is measured.
func (s Scenario) Burdened() bool { return s == Blocked || s == Scheduled || s == Foreign }

// Beside is how many messages wait and how many are dead, for as long as it is
// measured, where the burden has a size.
func (s Scenario) Beside(burden int) (waiting, dead int) {
	switch s {
	case Blocked:
		return burden, 1
	case Scheduled:
		return burden * scheduled, 0
	default:
		return 0, 0
	}
}

// all is how many tasks there are when n are measured.
func (s Scenario) all(n int) int {
	if s == Foreign {
		return n + foreign
	}
	return n
}

// Ordered reports whether the tasks are in streams that keep their order.
func (s Scenario) Ordered() bool { return s == Streams || s == Blocked }

// Stream is the number of the stream of a task.
func Stream(i int) int { return i % streams }

// Durable reports whether durable enqueues are measured: a library that may lose
// what it has acknowledged does not do those.
func (s Scenario) Durable() bool { return s == EnqueueOne || s == EnqueueMany }

// Attempts is how often a message may be tried: what fails dies at once, unless
// it is to succeed after that.
func (s Scenario) Attempts() int {
	if s == DeadFew || s == DeadAll {
		return 1
	}
	return 2
}

// Dies reports whether a task ends as a dead letter.
func (s Scenario) Dies(i int) bool { return s == DeadAll || s == DeadFew && i%100 == 0 }

// Dead is how many of n tasks end as dead letters.
func (s Scenario) Dead(n int) int {
	switch s {
	case DeadAll:
		return n
	case DeadFew:
		return (n + 99) / 100
	default:
		return 0
	}
}

// Runs is how often the handler is to see each task.
func (s Scenario) Runs() int {
	if s == FailsOnce {
		return 2
	}
	return 1
}
