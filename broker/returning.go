package broker

import (
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// Returning is a dead record on its way back.
type Returning struct {
	// Publication is what is sent: key, value and the headers of its sender. Its
	// channel is chosen by who sends it.
	Publication

	Whole       []Header     // all headers of a record as it lies; of a letter none
	Lies        string       // the channel that it lies on; empty: an office
	Origin      nixie.Origin // where it died, as far as is known; an offset of −1 is not
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
		Publication: Publication{Key: r.Key, Value: r.Value, Headers: headers}, Whole: r.Headers, Lies: r.Channel,
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
		Origin:      nixie.Origin{Offset: -1}, Letter: l.ID, Operation: l.Operation, Redrives: m.Redrives, FirstFailed: l.FirstFailedAt,
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

// Redriven is the record as it is sent now: as its sender made it, but for what was
// changed since, and with our headers, each of them once. A repeat of the same
// redrive has the same [HeaderRedriveID], whatever happened in between.
func (r *Returning) Redriven(now time.Time) Publication {
	w := onto(r.Headers, 9, 232)
	w.text(HeaderTopic, r.Origin.Channel)
	if r.Origin.Offset >= 0 && r.Origin.Channel != "" {
		w.number(HeaderPartition, int64(r.Origin.Partition))
		w.number(HeaderOffset, r.Origin.Offset)
	}
	w.time(HeaderTimestamp, r.Origin.Timestamp)
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
