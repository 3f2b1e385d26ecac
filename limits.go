package nixie

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what Nixie accepts and keeps. Input beyond a limit gets an error of [CodeLimit] or
// [CodeInvalid] that names the limit. Texts of a failure are cut, with a mark.
const (
	MaxBody        = 16 << 20 // bytes of a body
	MaxHeaders     = 64 << 10 // bytes of all headers of a message, names and values
	MaxName        = 255      // bytes of a queue, type, key, stream or dedupe key
	MaxBatch       = 10_000   // messages or settlements in one call
	MaxBatchBytes  = 64 << 20 // bytes of the bodies in one call
	MaxThen        = 100      // messages that follow a settlement
	MaxThenBytes   = 16 << 20 // bytes of their bodies
	MaxSteps       = 1_000    // named steps of a message
	MaxFailureText = 16 << 10 // bytes of a failure's text
	MaxStack       = 32 << 10 // bytes of a failure's stack
	MaxContext     = 32       // lines of a failure's context
	MaxAttachment  = 64 << 10 // bytes of one attachment
	MaxHistory     = 200      // failures kept of a message: the first and the newest; the others are counted
	MaxNotes       = 100      // notes on a letter
	MinPriority    = -4
	MaxPriority    = 4
	MaxDelay       = 10 * 365 * 24 * time.Hour
	MaxLease       = 12 * time.Hour
	MinLease       = 100 * time.Millisecond
	MinPriorityAge = time.Second
	MaxPriorityAge = 30 * 24 * time.Hour
	MaxPolicyText  = 8 << 10 // bytes of the policy of a queue
	MaxReason      = 1_000   // bytes of the reason that an operator gives
)

// CheckName checks a queue, type, key, stream or dedupe key: at most [MaxName] bytes of valid UTF-8
// without control characters. The error names the field by what.
func CheckName(what, name string) error {
	switch {
	case len(name) > MaxName:
		return Errorf(CodeInvalid, "%s has %d bytes, the limit is %d: shorten it or use a hash", what, len(name), MaxName)
	case !utf8.ValidString(name):
		return Errorf(CodeInvalid, "%s %q is not valid UTF-8: encode it, in hex for example", what, clip(name, 40))
	case strings.ContainsFunc(name, unicode.IsControl):
		return Errorf(CodeInvalid, "%s %q holds a control character: remove it", what, clip(name, 40))
	}
	return nil
}

// Check says what is wrong with a message before it is enqueued.
func (m *Message) Check() error {
	if m.Queue == "" {
		return Errorf(CodeInvalid, "queue is empty: name the queue of the message")
	}
	for _, f := range [...]struct{ what, value string }{
		{"queue", m.Queue}, {"type", m.Type}, {"key", m.Key}, {"stream", m.Stream}, {"dedupe key", m.DedupeKey},
	} {
		if err := CheckName(f.what, f.value); err != nil {
			return err
		}
	}
	if len(m.Body) > MaxBody {
		return Errorf(CodeLimit, "body has %d bytes, the limit is %d: store it elsewhere and enqueue a reference", len(m.Body), MaxBody)
	}
	size := 0
	for _, h := range m.Headers {
		size += len(h.Name) + len(h.Value)
		if h.Name == "" || !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			return Errorf(CodeInvalid, "header %q: name and value have to be valid UTF-8, and the name not empty", clip(h.Name, 40))
		}
	}
	if size > MaxHeaders {
		return Errorf(CodeLimit, "headers have %d bytes, the limit is %d: move data into the body", size, MaxHeaders)
	}
	if m.Priority < MinPriority || m.Priority > MaxPriority {
		return Errorf(CodeInvalid, "priority is %d: give one from %d to %d", m.Priority, MinPriority, MaxPriority)
	}
	if m.Delay < 0 || m.Delay > MaxDelay {
		return Errorf(CodeInvalid, "delay is %s: give one from 0 to %s", m.Delay, MaxDelay)
	}
	if m.Origin != nil {
		if at := m.Origin.Timestamp.UTC(); at.Year() < 0 || at.Year() > 9999 { // it has no form in JSON
			return Errorf(CodeInvalid, "origin.timestamp is %s: give a moment up to the year 9999", at)
		}
	}
	return nil
}
