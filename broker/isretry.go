package broker

import (
	"regexp"
	"strings"
	"sync"
)

// IsRetry reports whether a record is not a letter, but waits on a retry topic for its next
// attempt, ours or one of Spring Kafka. It returns the channel that the record came from.
func IsRetry(r *Record) (source string, waits bool) {
	if _, due := headerValue(r.Headers, HeaderDue); due {
		source, _ = headerValue(r.Headers, HeaderTopic)
		return source, true
	}
	if _, counted := headerValue(r.Headers, springAttempts); !counted {
		return "", false
	}
	source, _ = headerValue(r.Headers, springSource)
	return source, retryEnd().MatchString(strings.TrimPrefix(r.Channel, source))
}

// Spring Kafka puts these headers on records of its retry topics, and on letters that went through
// them.
const (
	springAttempts = "retry_topic-attempts"
	springSource   = "kafka_original-topic"
)

// retryEnd matches the end of the name of a retry topic: the word retry, or the number that Spring
// appends to any other word.
var retryEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[-._]retry$|[-._]\d+$`)
})
