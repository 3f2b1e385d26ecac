package contest

// Scenario names a load.
type Scenario string

// The scenarios.
const (
	EnqueueOne     Scenario = "enqueue-1"       // one producer, one message a call
	EnqueueMany    Scenario = "enqueue-32"      // 32 producers, one message a call
	EnqueueBatch   Scenario = "enqueue-batch"   // one producer, the library's best number of messages a call
	EnqueueBatches Scenario = "enqueue-batch-4" // four of those
	Drain          Scenario = "drain"           // all succeed, the handler does nothing
	Streams        Scenario = "streams"         // the same in 1,000 ordered streams
	FailsOnce      Scenario = "fails-once"      // each fails once, and succeeds in an immediate retry
	DeadFew        Scenario = "dead-1"          // one of a hundred ends as a dead letter
	DeadAll        Scenario = "dead-100"        // all end as dead letters
	PickUp         Scenario = "pick-up"         // from enqueue to handler in an idle system

	// Requests that a main loop answers. Only Nixie plays these.
	RoundTrip Scenario = "round-trip" // from the request to its answer in an idle system
	Calls     Scenario = "calls-32"   // 32 callers, each waits for its answer before it asks again
	Sends     Scenario = "sends-32"   // the same without answers: each sends when the last one is sent

	// Drain with telemetry. Only Nixie plays these, and they are compared with Drain.
	Metrics Scenario = "telemetry-metrics" // an observer for Prometheus, of the worker and of the store
	Traces  Scenario = "telemetry-traces"  // spans of OpenTelemetry, one of a hundred traces is sampled
)

// The scenarios with a burden. Each is compared with one without.
const (
	Blocked   Scenario = "blocked"   // Streams, with another one whose head is dead and has many followers
	Scheduled Scenario = "scheduled" // Drain, with many messages that are not due
	Foreign   Scenario = "foreign"   // Drain, while a foreign transaction that has enqueued is open
)

// Numbers of producers, and of streams.
const (
	producers      = 32
	batchProducers = 4
	streams        = 1000
	foreign        = 1000 // messages of the foreign transaction
	scheduled      = 10   // messages that are not due, for each message of the burden
)

// Drains reports whether the scenario drains messages that were enqueued before.
func (s Scenario) Drains() bool { return !s.Enqueues() && !s.Waits() && !s.Asks() }

// Waits reports whether the scenario measures latencies in an idle system.
func (s Scenario) Waits() bool { return s == PickUp || s == RoundTrip }

// Asks reports whether the tasks are requests to a main loop.
func (s Scenario) Asks() bool { return s == RoundTrip || s == Calls || s == Sends }

// Enqueues reports whether the scenario measures producers alone.
func (s Scenario) Enqueues() bool {
	return s == EnqueueOne || s == EnqueueMany || s == EnqueueBatch || s == EnqueueBatches
}

// Burdened reports whether the scenario has a burden.
func (s Scenario) Burdened() bool { return s == Blocked || s == Scheduled || s == Foreign }

// Alone reports whether Nixie alone plays the scenario: it is compared with another one of Nixie.
func (s Scenario) Alone() bool { return s.Burdened() || s.Asks() || s == Metrics || s == Traces }

// BurdenSizes returns the numbers of waiting and dead messages of a burden during the measurement.
func (s Scenario) BurdenSizes(burden int) (waiting, dead int) {
	switch s {
	case Blocked:
		return burden, 1
	case Scheduled:
		return burden * scheduled, 0
	default:
		return 0, 0
	}
}

// all returns the number of tasks of a measurement of n.
func (s Scenario) all(n int) int {
	if s == Foreign {
		return n + foreign
	}
	return n
}

// Ordered reports whether the tasks are in ordered streams.
func (s Scenario) Ordered() bool { return s == Streams || s == Blocked }

// Stream returns the number of a task's stream.
func Stream(i int) int { return i % streams }

// Durable reports whether the scenario measures durable enqueues. A library that may lose
// acknowledged messages has none.
func (s Scenario) Durable() bool { return s == EnqueueOne || s == EnqueueMany }

// Attempts returns the limit of attempts. A failed message dies at once, unless the scenario wants
// a success after a failure.
func (s Scenario) Attempts() int {
	if s == DeadFew || s == DeadAll {
		return 1
	}
	return 2
}

// Dies reports whether a task ends as a dead letter.
func (s Scenario) Dies(i int) bool { return s == DeadAll || s == DeadFew && i%100 == 0 }

// Dead returns the number of n tasks that end as dead letters.
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

// Runs returns the number of times that the handler must see each task.
func (s Scenario) Runs() int {
	if s == FailsOnce {
		return 2
	}
	return 1
}
