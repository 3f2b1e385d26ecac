package broker

import (
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Returning is a dead record on its way back.
type Returning struct {
	// Publication is what is sent: key, value and the headers of its sender. Its
	// channel is chosen by who sends it.
	Publication

	AllHeaders  []RecordHeader // all headers of a record as it lies; of a letter none, see [LetterHeaders]
	FoundOn     string         // the channel that it lies on; empty: an office
	Origin      nixie.Origin   // where it died, as far as is known; a partition or an offset of −1 is not
	Letter      nixie.ID
	Operation   nixie.ID // the redrive that sends it; zero: none says so
	Redrives    int      // before this one
	Cut         bool     // an office has not all of it
	FirstFailed time.Time
}

// FromRecord reads a record of a channel that takes letters.
func FromRecord(r *Record) Returning {
	d, headers := readDeath(r.Headers, true)
	d.fill(r)
	out := Returning{
		Publication: Publication{Key: r.Key, Value: r.Value, Headers: headers}, AllHeaders: r.Headers, FoundOn: r.Channel,
		Origin: nixie.Origin{Channel: d.Channel, Partition: d.Partition, Offset: d.Offset, Timestamp: d.Timestamp},
		Letter: d.Letter, Redrives: d.Redrives, FirstFailed: d.FirstFailed,
	}
	if out.Letter.IsZero() {
		out.Letter = letterID(&nixie.Message{ID: r.ID, Generation: 1 + d.Redrives})
	}
	return out
}

// FromLetter reads a letter of an office, with its body, and [nixie.Letter.Operation]
// the redrive that sends it. One that came from no broker has no channel.
func FromLetter(l *nixie.Letter) Returning {
	m := &l.Message
	out := Returning{
		Publication: Publication{Value: m.Body, Headers: outbound(m.Headers)},
		Origin:      nixie.Origin{Partition: -1, Offset: -1}, Letter: l.ID, Operation: l.Operation, Redrives: m.Redrives, FirstFailed: l.FirstFailedAt,
	}
	out.Cut = slices.ContainsFunc(m.Headers, func(h nixie.Header) bool { return h.Name == HeaderLeftOut || h.Name == HeaderBytesLeftOut })
	switch {
	case slices.ContainsFunc(m.Headers, func(h nixie.Header) bool { return h.Name == HeaderTombstone }):
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

// LetterHeaders are the headers that a letter of an office has on a channel that takes
// letters: those of its sender, and ours with what it died of. The letter is a whole
// one, or what it has of its history is left out.
func LetterHeaders(l *nixie.Letter) []RecordHeader {
	m, back := &l.Message, FromLetter(l)
	w := onto(back.Headers, 20, 512)
	w.place(&back.Origin)
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
	if len(l.History) > 1 {
		w.history(l.History, l.HistoryDropped)
	}
	if back.Key != nil {
		w.headers = append(w.headers, RecordHeader{HeaderKey, back.Key})
	}
	w.count(HeaderRedriveCount, m.Redrives)
	if !l.Operation.IsZero() {
		w.text(HeaderOperation, l.Operation.String())
	}
	w.text(HeaderLetterID, l.ID.String())
	return w.headers
}

// place says where something died, as far as that is known.
func (w *writer) place(o *nixie.Origin) {
	w.text(HeaderTopic, o.Channel)
	if o.Offset >= 0 && o.Channel != "" {
		if o.Partition >= 0 {
			w.number(HeaderPartition, int64(o.Partition))
		}
		w.number(HeaderOffset, o.Offset)
	}
	w.time(HeaderTimestamp, o.Timestamp)
}

// Redriven is the record as it is sent now: as its sender made it, but for what was
// changed since, and with our headers, each of them once. A repeat of the same
// redrive has the same [HeaderRedriveID], whatever happened in between.
func (r *Returning) Redriven(now time.Time) Publication {
	w := onto(r.Headers, 9, 232)
	w.place(&r.Origin)
	w.time(HeaderFirstFailureAt, r.FirstFailed)
	w.count(HeaderRedriveCount, r.Redrives+1)
	w.time(HeaderRedrivenAt, now)
	if !r.Operation.IsZero() {
		w.text(HeaderOperation, r.Operation.String())
	}
	id := append(append(w.values, r.Letter.String()...), '-')
	w.value(HeaderRedriveID, strconv.AppendInt(id, int64(r.Redrives+1), 10))
	p := r.Publication
	p.Headers = w.headers
	return p
}
