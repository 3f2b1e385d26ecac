package broker

// jobQueue is the format of dead jobs of other job queues.
const jobQueue = "job-queue"

// formats describe the headers of programs that put dead records on topics. A format whose headers
// stay on a redriven record comes last. The names come from what each program publishes:
//
//   - job-queue: jobs that package broker/redis/foreign reads;
//   - nixie: this package, and the sample of the dead letter channel pattern;
//   - spring: Spring for Apache Kafka, KafkaHeaders and RetryTopicHeaders; the
//     retry topics of 2.7 and later omit the dlt-;
//   - connect: Kafka Connect, KIP-298;
//   - streams: Kafka Streams, KIP-1034;
//   - share: share groups of Kafka, KIP-1191 and as its broker writes them, and the
//     draft KIP-1317;
//   - watermill: middleware.PoisonQueue;
//   - masstransit: the error transport of MassTransit;
//   - wolverine: DeadLetterQueueConstants of Wolverine;
//   - spring-amqp: RepublishMessageRecoverer of Spring AMQP;
//   - rabbitmq: x-death of its server, as package broker/rabbitmq reads it;
//   - ad-hoc: headers that many programs write by hand.
var formats = []format{
	{name: jobQueue, markers: []string{"job-system"}, parts: ourParts},
	{name: "nixie", markers: []string{HeaderLetterID, HeaderFailureReason, HeaderReason}, prefixes: []string{"x-nixie-"}, parts: ourParts},
	{
		name: "spring", binary: true, wrapper: "org.springframework.kafka.listener.ListenerExecutionFailedException",
		prefixes: []string{"kafka_dlt-", "kafka_original-", "kafka_exception-", "retry_topic-", "kafka_key-exception-"},
		markers:  []string{"kafka_dlt-original-topic", "kafka_dlt-exception-fqcn", "kafka_original-topic", "kafka_exception-fqcn"},
		parts: map[string]part{
			"kafka_dlt-original-topic": channel, "kafka_original-topic": channel,
			"kafka_dlt-original-partition": partition, "kafka_original-partition": partition,
			"kafka_dlt-original-offset": offset, "kafka_original-offset": offset,
			"kafka_dlt-original-timestamp": timestamp, "kafka_original-timestamp": timestamp,
			"kafka_dlt-original-timestamp-type": ignored, "kafka_original-timestamp-type": ignored,
			"kafka_dlt-exception-fqcn": exception, "kafka_exception-fqcn": exception,
			"kafka_dlt-exception-cause-fqcn": cause, "kafka_exception-cause-fqcn": cause,
			"kafka_dlt-exception-message": text, "kafka_exception-message": text,
			"kafka_dlt-exception-stacktrace": stack, "kafka_exception-stacktrace": stack,
			"kafka_dlt-key-exception-fqcn": exception, "kafka_key-exception-fqcn": exception,
			"kafka_dlt-key-exception-message": text, "kafka_key-exception-message": text,
			"kafka_dlt-key-exception-stacktrace": stack, "kafka_key-exception-stacktrace": stack,
			"retry_topic-attempts": nextAttempt, "kafka_deliveryattempt": attempts,
			"retry_topic-original-timestamp": ignored, "retry_topic-backoff-timestamp": ignored,
		},
	},
	{
		name: "connect", prefixes: []string{"__connect.errors."},
		markers: []string{"__connect.errors.topic", "__connect.errors.exception.class.name"},
		parts: map[string]part{
			"__connect.errors.topic": channel, "__connect.errors.partition": partition, "__connect.errors.offset": offset,
			"__connect.errors.timestamp": timestamp, "__connect.errors.exception.class.name": exception,
			"__connect.errors.exception.message": text, "__connect.errors.exception.stacktrace": stack,
			"__connect.errors.cause.class": cause,
		},
	},
	{
		name: "streams", prefixes: []string{"__streams.errors."}, markers: []string{"__streams.errors.topic", "__streams.errors.exception"},
		parts: map[string]part{
			"__streams.errors.topic": channel, "__streams.errors.partition": partition, "__streams.errors.offset": offset,
			"__streams.errors.exception": exception, "__streams.errors.message": text, "__streams.errors.stacktrace": stack,
		},
	},
	{
		name: "share", prefixes: []string{"__dlq.errors.", "_dlq.errors."},
		markers: []string{"__dlq.errors.topic", "_dlq.errors.original.topic", "_dlq.errors.topic"},
		parts: map[string]part{
			"__dlq.errors.topic": channel, "_dlq.errors.original.topic": channel, "_dlq.errors.topic": channel,
			"__dlq.errors.partition": partition, "_dlq.errors.original.partition": partition, "_dlq.errors.partition": partition,
			"__dlq.errors.offset": offset, "_dlq.errors.original.offset": offset, "_dlq.errors.offset": offset,
			"__dlq.errors.delivery.count": attempts, "_dlq.errors.delivery.count": attempts,
			"__dlq.errors.message": text, "_dlq.errors.message": text, "_dlq.errors.disposition": reasonText,
		},
	},
	{
		name: "watermill", markers: []string{"topic_poisoned", "reason_poisoned"},
		prefixes: []string{"_watermill_requeuer_", "_watermill_delayed_"},
		parts: map[string]part{
			"topic_poisoned": channel, "reason_poisoned": poisonText, "handler_poisoned": node, "subscriber_poisoned": ignored,
			"_watermill_requeuer_retries": redrives,
		},
	},
	{
		name: "masstransit", markers: []string{"mt-fault-inputaddress", "mt-fault-exceptiontype"},
		prefixes: []string{"mt-fault-", "mt-host-", "mt-reason"},
		parts: map[string]part{
			"mt-fault-inputaddress": address, "mt-reason": reasonText, "mt-fault-exceptiontype": exception, "mt-fault-message": text,
			"mt-fault-stacktrace": stack, "mt-fault-timestamp": lastFailed, "mt-fault-retrycount": attempts, "mt-host-machinename": node,
		},
	},
	{
		name: "wolverine", markers: []string{"original-destination"},
		parts: map[string]part{
			"original-destination": address, "original-partition": partition, "original-offset": offset, "exception-type": exception,
			"exception-message": text, "exception-stack": stack, "failed-at": lastFailed, "attempts": attempts,
		},
	},
	{
		name: "spring-amqp", markers: []string{"x-original-routingkey"},
		parts: map[string]part{
			"x-original-routingkey": channel, "x-original-exchange": ignored,
			HeaderExceptionText: text, HeaderStack: stack, HeaderException: exception,
		},
	},
	{
		name: "rabbitmq", markers: []string{"x-death-why"}, prefixes: []string{"x-death-"},
		parts: map[string]part{
			"x-death-origin": channel, "x-death-cause": reason, "x-death-why": text,
			"x-death-at": lastFailed, "x-death-first-at": firstFailed,
			"x-death-exception": exception, "x-death-stack": stack, "x-death-attempts": attempts,
		},
	},
	{
		name:    "ad-hoc",
		markers: []string{HeaderTopic, "x-original-subject", "x-dead-letter-reason", "x-retry-count"},
		parts:   ourParts,
	},
}

// ourParts maps our own headers, and those that other programs write with them.
var ourParts = map[string]part{
	HeaderTopic: channel, HeaderPartition: partition, HeaderOffset: offset, HeaderTimestamp: timestamp,
	HeaderFailureReason: reasonText, HeaderReason: reason, HeaderFailureClass: class, HeaderException: exception, HeaderExceptionText: text,
	HeaderStack: stack, HeaderErrorCode: errorCode, HeaderGroupName: groupName, HeaderAttempts: attempts, HeaderFirstFailureAt: firstFailed,
	HeaderLastFailureAt: lastFailed, HeaderFailedNode: node, HeaderLetterID: letter,
	"x-original-subject": channel, "x-dead-letter-reason": reasonText, "x-retry-count": attempts, "replay_count": redrives,
}
