package broker

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Names of the headers that we put on records. Readers ignore the case of a name, and the last
// header of a name counts. A new value replaces the old one: a record that dies a hundred times has
// no more of our headers than one that died once.
const (
	HeaderTopic          = "x-original-topic"
	HeaderPartition      = "x-original-partition"
	HeaderOffset         = "x-original-offset"
	HeaderTimestamp      = "x-original-timestamp" // milliseconds since 1970, like all times
	HeaderFailureReason  = "x-failure-reason"     // in the words of the dead letter channel pattern
	HeaderReason         = "x-nixie-reason"       // a [nixie.Reason]
	HeaderFailureClass   = "x-failure-class"
	HeaderException      = "x-exception" // type of the error
	HeaderExceptionText  = "x-exception-message"
	HeaderStack          = "x-exception-stacktrace"
	HeaderStackHash      = "x-stack-hash"
	HeaderErrorCode      = "x-error-code"       // exit code of a command
	HeaderGroupName      = "x-nixie-group-name" // that was given by hand
	HeaderAttempts       = "x-attempts"
	HeaderFirstFailureAt = "x-first-failure-at"
	HeaderLastFailureAt  = "x-last-failure-at"
	HeaderFailedNode     = "x-failed-node"
	HeaderKey            = "x-message-key" // missing if the record has no key
	HeaderRedriveCount   = "x-redrive-count"
	HeaderRedrivenAt     = "x-redriven-at" // from which max_age counts
	HeaderLetterID       = "x-dead-letter-id"
	HeaderDeliveries     = "x-nixie-deliveries"
	HeaderCrashes        = "x-nixie-crashes"
	HeaderPatience       = "x-nixie-patience"         // what policy counts besides, in JSON
	HeaderSteps          = "x-nixie-steps"            // a list in JSON
	HeaderHistory        = "x-nixie-history"          // failures so far, in JSON
	HeaderID             = "x-nixie-id"               // of the message, while it waits on a stage
	HeaderLeftOut        = "x-nixie-headers-left-out" // number of headers that an office could not keep
	HeaderBytesLeftOut   = "x-nixie-bytes-left-out"   // bytes of key and value that an office could not keep
	HeaderBodyAt         = "x-nixie-body-at"          // where the body lay that a letter was too large for; the office has it
	HeaderDue            = "x-nixie-due"              // when a record on a stage is due
	HeaderGroup          = "x-nixie-group"            // group of a retry, if several groups share a stage
	HeaderRedriveID      = "x-redrive-id"             // the same at each repeat of one redrive
	HeaderOperation      = "x-redrive-operation"      // the redrive that sent the record last; also on its letter when it dies again
	HeaderTombstone      = "x-nixie-tombstone"
)

// Names of the headers of a message that follows a settlement. Its receivers see them.
const (
	HeaderDedupeKey = "x-nixie-dedupe-key" // the same when the message is published again
	HeaderType      = "x-nixie-type"       // becomes the type of the message
)

// Names of the headers with which a job that died in another job queue comes to an office.
const (
	HeaderReview   = "job-review"    // why a person has to look before a redrive: what that leaves out
	HeaderMade     = "job-made"      // what stays the same of a job in all its deaths, if its time of creation does not
	HeaderNeverRan = "job-never-ran" // why the job died without an attempt of its own: it is not redrivable
)

// Ours reports whether we write headers of this name. Those that a record brings along are
// replaced when it is published again.
func Ours(name string) bool {
	if len(name) < 2 || name[0]|0x20 != 'x' || name[1] != '-' {
		return false // the common case, without allocation
	}
	switch strings.ToLower(name) {
	case HeaderTopic, HeaderPartition, HeaderOffset, HeaderTimestamp, HeaderFailureReason, HeaderReason, HeaderFailureClass,
		HeaderException, HeaderExceptionText, HeaderStack, HeaderStackHash, HeaderErrorCode, HeaderAttempts, HeaderFirstFailureAt,
		HeaderLastFailureAt, HeaderFailedNode, HeaderKey, HeaderRedriveCount, HeaderRedrivenAt, HeaderLetterID,
		HeaderDeliveries, HeaderCrashes, HeaderPatience, HeaderSteps, HeaderHistory, HeaderID, HeaderDue, HeaderGroup, HeaderLeftOut,
		HeaderGroupName, HeaderBytesLeftOut, HeaderRedriveID, HeaderOperation, HeaderTombstone, HeaderBodyAt:
		return true
	}
	return false
}

// senderHeaders returns the headers that are not ours, in their order.
func senderHeaders(headers []RecordHeader) []RecordHeader {
	n := slices.IndexFunc(headers, func(h RecordHeader) bool { return Ours(h.Name) })
	if n < 0 {
		return slices.Clip(headers)
	}
	kept := slices.Clip(headers[:n])
	for _, h := range headers[n:] {
		if !Ours(h.Name) {
			kept = append(kept, h)
		}
	}
	return kept
}

// headerValue returns the value of the last header of a name.
func headerValue(headers []RecordHeader, name string) (string, bool) {
	for i := len(headers) - 1; i >= 0; i-- {
		if strings.EqualFold(headers[i].Name, name) {
			return string(headers[i].Value), true
		}
	}
	return "", false
}

// OperationOf returns the redrive that sent a record last, also from the headers of its letter;
// zero if there is none.
func OperationOf(headers []RecordHeader) nixie.ID {
	text, ok := headerValue(headers, HeaderOperation)
	if !ok { // the common case, without the cost of an error
		return nixie.ID{}
	}
	id, err := nixie.ParseID(text)
	if err != nil {
		return nixie.ID{}
	}
	return id
}

// operation copies the header that names the redrive.
func (w *headerWriter) operation(headers []RecordHeader) {
	if id := OperationOf(headers); !id.IsZero() {
		w.text(HeaderOperation, id.String())
	}
}

// letter copies the header that names the letter that a record was before its redrive.
func (w *headerWriter) letter(headers []RecordHeader) {
	if text, ok := headerValue(headers, HeaderRedriveID); ok {
		w.text(HeaderRedriveID, text)
	}
}

// headerNumber reads a header that holds a count: 0 if it is missing, negative or no number.
func headerNumber(headers []RecordHeader, name string) int64 {
	text, ok := headerValue(headers, name)
	if !ok { // the common case, without the cost of an error
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// headerCount reads a count that is at most maxCount.
func headerCount(headers []RecordHeader, name string) int {
	return int(min(headerNumber(headers, name), maxCount))
}

// headerTime reads a header that holds a time; zero if there is none.
func headerTime(headers []RecordHeader, name string) time.Time {
	if n := headerNumber(headers, name); n > 0 {
		return clampTime(time.UnixMilli(n))
	}
	return time.Time{}
}

// clampTime limits a time from outside to what stores can keep: 1970 to 2261.
func clampTime(t time.Time) time.Time {
	switch at := t.Unix(); {
	case at > lastTime:
		return time.Unix(lastTime, 0).UTC()
	case at < 1 && t.UnixMilli() < 1:
		return time.UnixMilli(1).UTC()
	}
	return t.UTC()
}

const (
	lastTime = 9_214_646_399 // seconds since 1970: the end of 2261
	maxCount = 1<<31 - 2     // of attempts, crashes and redrives: one more still fits into 32 bits
)

// headerWriter puts our headers on a record, in a fixed order, without empty ones. Their values
// share one buffer.
type headerWriter struct {
	headers []RecordHeader
	values  []byte
}

// newHeaderWriter begins with the headers of the sender, and allocates for about the given number
// of ours and their bytes.
func newHeaderWriter(headers []RecordHeader, ours, bytes int) headerWriter {
	kept := senderHeaders(headers)
	return headerWriter{append(make([]RecordHeader, 0, len(kept)+ours), kept...), make([]byte, 0, bytes)}
}

func (w *headerWriter) text(name, value string) {
	if value != "" {
		w.value(name, append(w.values, value...))
	}
}

func (w *headerWriter) number(name string, n int64) {
	w.value(name, strconv.AppendInt(w.values, n, 10))
}

// value adds a header; the caller has appended its value to w.values.
func (w *headerWriter) value(name string, values []byte) {
	w.headers = append(w.headers, RecordHeader{name, values[len(w.values):len(values):len(values)]})
	w.values = values
}

func (w *headerWriter) count(name string, n int) {
	if n > 0 {
		w.number(name, int64(n))
	}
}

func (w *headerWriter) time(name string, t time.Time) {
	if !t.IsZero() {
		w.number(name, t.UnixMilli())
	}
}
