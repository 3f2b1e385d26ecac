package broker

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Names of the headers that we put on records. They are read without regard to
// case, the last one counts, and what is written replaces what was there: a record
// that dies a hundred times has no more of them than one that died once.
const (
	HeaderTopic          = "x-original-topic"
	HeaderPartition      = "x-original-partition"
	HeaderOffset         = "x-original-offset"
	HeaderTimestamp      = "x-original-timestamp" // as all times: milliseconds since 1970
	HeaderFailureReason  = "x-failure-reason"     // by the words of a dead letter channel
	HeaderReason         = "x-nixie-reason"       // by ours
	HeaderFailureClass   = "x-failure-class"
	HeaderException      = "x-exception" // type of the error
	HeaderExceptionText  = "x-exception-message"
	HeaderStack          = "x-exception-stacktrace"
	HeaderStackHash      = "x-stack-hash"
	HeaderErrorCode      = "x-error-code" // exit code of a command
	HeaderAttempts       = "x-attempts"
	HeaderFirstFailureAt = "x-first-failure-at"
	HeaderLastFailureAt  = "x-last-failure-at"
	HeaderFailedNode     = "x-failed-node"
	HeaderKey            = "x-message-key" // missing for a record without a key
	HeaderRedriveCount   = "x-redrive-count"
	HeaderRedrivenAt     = "x-redriven-at"
	HeaderLetterID       = "x-dead-letter-id"
	HeaderDeliveries     = "x-nixie-deliveries"
	HeaderCrashes        = "x-nixie-crashes"
	HeaderSteps          = "x-nixie-steps"            // a list in JSON
	HeaderHistory        = "x-nixie-history"          // the failures before, in JSON
	HeaderID             = "x-nixie-id"               // of the message, while it waits on a stage
	HeaderLeftOut        = "x-nixie-headers-left-out" // how many, of a letter in an office
	HeaderBytesLeftOut   = "x-nixie-bytes-left-out"   // of key and value of a letter in an office
	HeaderDue            = "x-nixie-due"              // when it is to be handed out again
	HeaderGroup          = "x-nixie-group"            // who is to have it again, where several read a stage
	HeaderRedriveID      = "x-redrive-id"             // the same each time that one redrive is repeated
	HeaderOperation      = "x-redrive-operation"      // the redrive that sent it last, also on its letter when it dies again
	HeaderTombstone      = "x-nixie-tombstone"
)

// Ours reports whether we write headers of this name. Those that a record brings along are
// replaced when it is published again.
func Ours(name string) bool {
	if len(name) < 2 || name[0]|0x20 != 'x' || name[1] != '-' {
		return false // as all of them begin
	}
	switch strings.ToLower(name) {
	case HeaderTopic, HeaderPartition, HeaderOffset, HeaderTimestamp, HeaderFailureReason, HeaderReason, HeaderFailureClass,
		HeaderException, HeaderExceptionText, HeaderStack, HeaderStackHash, HeaderErrorCode, HeaderAttempts, HeaderFirstFailureAt,
		HeaderLastFailureAt, HeaderFailedNode, HeaderKey, HeaderRedriveCount, HeaderRedrivenAt, HeaderLetterID,
		HeaderDeliveries, HeaderCrashes, HeaderSteps, HeaderHistory, HeaderID, HeaderDue, HeaderGroup, HeaderLeftOut, HeaderBytesLeftOut, HeaderRedriveID, HeaderOperation, HeaderTombstone:
		return true
	}
	return false
}

// theirs returns the headers that are not ours, in their order.
func theirs(headers []RecordHeader) []RecordHeader {
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

// last returns the value of the last header of a name.
func last(headers []RecordHeader, name string) (string, bool) {
	for i := len(headers) - 1; i >= 0; i-- {
		if strings.EqualFold(headers[i].Name, name) {
			return string(headers[i].Value), true
		}
	}
	return "", false
}

// OperationOf is the redrive that sent a record last, also of a letter on a channel;
// zero if none is named.
func OperationOf(headers []RecordHeader) nixie.ID {
	text, ok := last(headers, HeaderOperation)
	if !ok { // as most: no error for it
		return nixie.ID{}
	}
	id, err := nixie.ParseID(text)
	if err != nil {
		return nixie.ID{}
	}
	return id
}

// operation passes on which redrive sent a record.
func (w *writer) operation(headers []RecordHeader) {
	if id := OperationOf(headers); !id.IsZero() {
		w.text(HeaderOperation, id.String())
	}
}

// letter passes on which letter a record was that waits for a retry.
func (w *writer) letter(headers []RecordHeader) {
	if text, ok := last(headers, HeaderRedriveID); ok {
		w.text(HeaderRedriveID, text)
	}
}

// number reads a header that counts something: 0 if it is missing, not a number
// or negative.
func number(headers []RecordHeader, name string) int64 {
	text, ok := last(headers, name)
	if !ok { // as most: no error for it
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// count is number for what is bounded.
func count(headers []RecordHeader, name string) int { return int(min(number(headers, name), maxCount)) }

// moment reads a header that holds a time; zero if there is none.
func moment(headers []RecordHeader, name string) time.Time {
	if n := number(headers, name); n > 0 {
		return sane(time.UnixMilli(n))
	}
	return time.Time{}
}

// sane brings a time of foreign making into what can be kept: 1970 to 2261.
func sane(t time.Time) time.Time {
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
	maxCount = 1<<31 - 2     // of attempts and the like, so that one more is still a number
)

// writer puts our headers on a record, in a fixed order and only those that say
// something. Their values share memory.
type writer struct {
	headers []RecordHeader
	values  []byte
}

// onto begins with the headers of the sender, and has room for about so many of ours.
func onto(headers []RecordHeader, ours, bytes int) writer {
	kept := theirs(headers)
	return writer{append(make([]RecordHeader, 0, len(kept)+ours), kept...), make([]byte, 0, bytes)}
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.value(name, append(w.values, value...))
	}
}

func (w *writer) number(name string, n int64) { w.value(name, strconv.AppendInt(w.values, n, 10)) }

// value takes what was appended to the values as that of a header.
func (w *writer) value(name string, values []byte) {
	w.headers = append(w.headers, RecordHeader{name, values[len(w.values):len(values):len(values)]})
	w.values = values
}

func (w *writer) count(name string, n int) {
	if n > 0 {
		w.number(name, int64(n))
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.number(name, t.UnixMilli())
	}
}
