package telemetry

import "slices"

// definition describes a metric or an instrument.
type definition struct {
	name   string
	kind   string // counter, gauge or histogram
	labels []string
	help   string
}

const (
	prefix    = "nixie_"
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// metrics lists every metric of [Prometheus] and [Metrics.Gauges], without the prefix.
// docs/telemetry.md tells what to do when one moves.
var metrics = []definition{
	{"enqueued_total", counter, []string{"queue"}, "Messages that were accepted and were not there before."},
	{"received_total", counter, []string{"queue"}, "Deliveries that workers received."},
	{"extended_total", counter, []string{"queue"}, "Leases that were renewed."},
	{"settled_total", counter, []string{"queue", "verb"}, "Deliveries that were settled, by decision."},
	{"refused_total", counter, []string{"queue"}, "Outcomes that came after the end of their lease and do not count."},
	{"failures_total", counter, []string{"queue", "class", "reason"}, "Attempts that failed."},
	{"dead_total", counter, []string{"queue", "cause", "reason"}, "Messages that died."},
	{"redriven_total", counter, []string{"queue", "outcome"}, "Redrives begun (queued), confirmed by a broker (sent), " +
		"refused, and ends of redriven messages (succeeded, died)."},
	{"crashes_total", counter, []string{"queue"}, "Deliveries whose last holder vanished."},
	{"lease_lost_total", counter, []string{"queue"}, "Leases that were lost before the handler had ended."},
	{"late_total", counter, []string{"queue"}, "Handlers that ran past their timeout."},
	{"trouble_total", counter, []string{"queue"}, "Calls of the source that failed."},
	{"purged_total", counter, nil, "Records that retention or a purge removed for good."},
	{"breaker_transitions_total", counter, []string{"queue", "state"}, "Circuit breakers that entered a state."},
	{"connected", gauge, []string{"queue"}, "1 while the source answers the worker, otherwise 0."},
	{"handler_seconds", histogram, []string{"queue"}, "Time that handlers took."},
	{"attempts_to_end", histogram, []string{"queue", "verb"}, "Attempts that messages needed until they ended."},

	{"queue_messages", gauge, []string{"queue", "state"}, "Messages that have not ended."},
	{"queue_oldest_ready_seconds", gauge, []string{"queue"}, "How long the oldest ready message has been due, 0 without one."},
	{"letters", gauge, []string{"queue", "status"}, "Dead letters."},
	{"letters_oldest_seconds", gauge, []string{"queue"}, "Time since the oldest death that waits for an operator, 0 without one."},
	{"streams_blocked", gauge, []string{"queue"}, "Streams behind a dead message."},
	{"poison_suspects", gauge, nil, "Messages that may be poison."},
	{"workers", gauge, nil, "Processes that hold leases."},
	{"store_up", gauge, nil, "1 if the store answered the last look, otherwise 0."},
	{"build_info", gauge, []string{"version", "goversion"}, "1, with the version of this program."},
}

// instruments lists the instruments of [OpenTelemetry]. Their names have no prefix. Those of dead
// letters are the ones that work queues of others have, those of messaging are conventions.
var instruments = []definition{
	{"dlq.messages.sent", counter, []string{"queue"}, "Messages that died."},
	{"dlq.messages.processed", counter, []string{"queue"},
		"Letters that were redriven, discarded or held, and notices that consumers handled."},
	{"dlq.messages.replayed", counter, []string{"queue"}, "Letters that were redriven, by operators or by handlers of consumers."},
	{"dlq.messages.discarded", counter, []string{"queue"}, "Letters that were discarded, and notices of deaths that consumers dropped."},
	{"dlq.queue.depth", gauge, []string{"queue"}, "Letters that wait for an operator."},
	{"dlq.message.age_seconds", histogram, []string{"queue"},
		"Age of letters when they were redriven, discarded or held, or their notices handled."},
	{"dlq.processing.duration_ms", histogram, []string{"queue"}, "Time that handlers took for notices, and for redriven messages."},

	{sentMessages, counter, messagingLabels, "Messages that were accepted and were not there before."},
	{consumedMessages, counter, messagingLabels, "Deliveries that workers received."},
	{processDuration, histogram, append(slices.Clone(messagingLabels), string(keyError)), "Time that handlers took."},
}

// messagingLabels are those of every instrument of messaging.
var messagingLabels = []string{string(keySystem), string(keyOperation), string(keyDestination)}

// named returns the metric of that name.
func named(name string) definition {
	for _, m := range metrics {
		if m.name == name {
			return m
		}
	}
	panic("telemetry: no metric " + name)
}
