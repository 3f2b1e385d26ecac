package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Spans and metrics of messaging follow version 1.44.0 of the semantic conventions of
// OpenTelemetry, in which those of messaging are in development. All their names are here.
const (
	schemaURL = "https://opentelemetry.io/schemas/1.44.0"

	processDuration  = "messaging.process.duration"
	sentMessages     = "messaging.client.sent.messages"
	consumedMessages = "messaging.client.consumed.messages"

	keySystem        = attribute.Key("messaging.system")
	keyOperation     = attribute.Key("messaging.operation.name")
	keyOperationType = attribute.Key("messaging.operation.type")
	keyDestination   = attribute.Key("messaging.destination.name")
	keyCount         = attribute.Key("messaging.batch.message_count")
	keyMessageID     = attribute.Key("messaging.message.id")
	keyConversation  = attribute.Key("messaging.message.conversation_id")
	keyBodySize      = attribute.Key("messaging.message.body.size")
	keyError         = attribute.Key("error.type")
)

// The conventions have no names for these.
const (
	system      = "nixie"
	keyAttempt  = attribute.Key("nixie.attempt")
	keyRedrives = attribute.Key("nixie.redrives")
	keyType     = attribute.Key("nixie.message.type")
	keyCause    = attribute.Key("nixie.cause")
	keyQueue    = attribute.Key("queue") // of metrics of dead letters
)

// operationType is a type of operations of the conventions, with the kind of their spans.
type operationType struct {
	name string
	kind trace.SpanKind
}

var (
	sending    = operationType{"send", trace.SpanKindProducer}
	receiving  = operationType{"receive", trace.SpanKindClient}
	processing = operationType{"process", trace.SpanKindConsumer}
	settling   = operationType{"settle", trace.SpanKindClient}
)
