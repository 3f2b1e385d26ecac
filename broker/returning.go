package broker

import (
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Returning is a dead record that a redrive sends back.
type Returning struct {
	// Publication holds key, value and the headers of the sender. The redrive chooses the channel.
	Publication

	AllHeaders  []RecordHeader // of a record as it was found; nil for a letter, see [LetterHeaders]
	FoundOn     string         // channel where the record was found; empty: it comes from an office
	Origin      nixie.Origin   // where it died; a partition or an offset of −1 is unknown
	Letter      nixie.ID
	Operation   nixie.ID // the redrive that sends it; zero: unknown
	Redrives    int      // earlier ones
	Cut         bool     // the office has only a part of it
	Lacks       string   // what of it is elsewhere, and why, as a sentence: it cannot be sent
	FirstFailed time.Time
}

// Header returns the value of the last header of a name; "" if there is none.
func (r *Returning) Header(name string) string {
	value, _ := headerValue(r.Headers, name)
	return value
}

// FromRecord reads a record of a channel that takes letters.
func FromRecord(r *Record) Returning {
	d, headers := readDeath(r.Headers, true)
	generation := 1 + d.Redrives
	w := r.stand(&d, headers)
	d.fill(r)
	out := Returning{
		Publication: Publication{Key: w.key, Value: w.value, Headers: w.sender}, AllHeaders: w.all, FoundOn: r.Channel, Lacks: w.lacks,
		Origin: nixie.Origin{Channel: d.Channel, Partition: d.Partition, Offset: d.Offset, Timestamp: d.Timestamp,
			Server: r.Server, Database: r.Database, Prefix: r.Prefix, BodyHash: r.BodyHash},
		Letter: d.Letter, Redrives: d.Redrives, FirstFailed: d.FirstFailed,
	}
	if out.Letter.IsZero() {
		out.Letter = letterID(r.ID, generation)
	}
	return out
}

// lacksBody says what a letter lacks that was too large for its channel.
func lacksBody(at string) string {
	return "it was too large for its channel with its body, which the office of its consumer has; the record was " + at
}

// FromLetter reads a letter of an office, with its body. [nixie.Letter.Operation] names the redrive
// that sends it. If the letter came from no broker, its origin has no channel.
func FromLetter(l *nixie.Letter) Returning {
	m := &l.Message
	out := Returning{
		Publication: Publication{Value: m.Body, Headers: outbound(m.Headers)},
		Origin:      nixie.Origin{Partition: -1, Offset: -1}, Letter: l.ID, Operation: l.Operation, Redrives: m.Redrives,
		FirstFailed: l.FirstFailedAt,
	}
	out.Cut = slices.ContainsFunc(m.Headers, func(h nixie.Header) bool { return h.Name == HeaderLeftOut || h.Name == HeaderBytesLeftOut })
	old := *l
	if MarkElsewhere(&old) || m.Origin != nil && m.Origin.BodyAt != "" {
		out.Lacks = "its body is not in its letter: it lay at " + old.Message.Origin.BodyAt
	}
	switch {
	case isTombstone(m):
		out.Value = nil
	case out.Value == nil:
		out.Value = []byte{}
	}
	switch {
	case m.Origin != nil:
		out.Origin, out.Key = *m.Origin, m.Origin.Key
	case m.Key != "":
		out.Key = []byte(m.Key)
	}
	return out
}

// LetterHeaders returns the headers of a letter of an office when it goes to a channel that takes
// letters: those of the sender, and ours, which say how it died. If the letter was read without its
// body and history, the history is missing there too.
func LetterHeaders(l *nixie.Letter) []RecordHeader {
	m, back := &l.Message, FromLetter(l)
	w := newHeaderWriter(back.Headers, 20, 512)
	w.location(&back.Origin)
	cause := l.Cause
	switch {
	case cause != nixie.CauseAdopted:
	case l.Class == nixie.ClassPermanent:
		cause = nixie.CausePermanent
	default:
		cause = nixie.CauseExhausted
	}
	w.text(HeaderFailureReason, policy.ChannelReason(l.Class, cause))
	newest := nixie.Failure{Reason: l.Reason, Class: l.Class, Text: m.LastFailure, FailedAt: l.LastFailedAt}
	if n := len(l.History); n > 0 {
		newest = l.History[n-1]
	}
	w.failure(&newest)
	w.counts(m.Attempts, m.Crashes)
	w.time(HeaderFirstFailureAt, l.FirstFailedAt)
	if len(l.History) > 1 || newest.Step != "" { // no other header names the step
		w.history(l.History, l.HistoryDropped)
	}
	if back.Key != nil {
		w.headers = append(w.headers, RecordHeader{HeaderKey, back.Key})
	}
	w.count(HeaderRedriveCount, m.Redrives)
	w.time(HeaderRedrivenAt, m.RedrivenAt)
	if !l.Operation.IsZero() {
		w.text(HeaderOperation, l.Operation.String())
	}
	w.text(HeaderLetterID, l.ID.String())
	return w.headers
}

// location writes where a message died, as far as that is known.
func (w *headerWriter) location(o *nixie.Origin) {
	w.text(HeaderTopic, o.Channel)
	if o.Offset >= 0 && o.Channel != "" {
		if o.Partition >= 0 {
			w.number(HeaderPartition, int64(o.Partition))
		}
		w.number(HeaderOffset, o.Offset)
	}
	w.time(HeaderTimestamp, o.Timestamp)
}

// Redriven returns the record to send now: the record of its sender, with the changes since then,
// and each of our headers once. Repeats of one redrive have the same [HeaderRedriveID].
func (r *Returning) Redriven(now time.Time) Publication {
	w := newHeaderWriter(r.Headers, 9, 232)
	w.location(&r.Origin)
	w.time(HeaderFirstFailureAt, r.FirstFailed)
	w.count(HeaderRedriveCount, r.Redrives+1)
	w.time(HeaderRedrivenAt, now)
	if !r.Operation.IsZero() {
		w.text(HeaderOperation, r.Operation.String())
	}
	id := append(append(w.values, r.Letter.String()...), '-')
	w.value(HeaderRedriveID, strconv.AppendInt(id, int64(r.Redrives+1), 10))
	p := r.Publication
	p.Headers, p.Origin = w.headers, &r.Origin
	return p
}
