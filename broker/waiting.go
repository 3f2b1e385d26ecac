package broker

import (
	"regexp"
	"strings"
)

// Waiting reports whether a record is no letter, but waits for its next attempt on a
// topic of retries, of ours or of Spring Kafka, and names the channel that it came from.
func IsRetry(r *Record) (source string, waits bool) {
	if _, due := last(r.Headers, HeaderDue); due {
		source, _ = last(r.Headers, HeaderTopic)
		return source, true
	}
	if _, counted := last(r.Headers, springAttempts); !counted {
		return "", false
	}
	source, _ = last(r.Headers, springSource)
	return source, retryEnd.MatchString(strings.TrimPrefix(r.Channel, source))
}

// Headers of Spring Kafka that are on its topics of retries and on those of letters after
// them.
const (
	springAttempts = "retry_topic-attempts"
	springSource   = "kafka_original-topic"
)

// retryEnd is how the name of a topic of retries ends: with that word, or with the place
// or the milliseconds of the retry, which Spring appends whatever the word is.
var retryEnd = regexp.MustCompile(`(?i)[-._]retry$|[-._]\d+$`)
