package broker

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Original is the record that a dead record points to. Dead letters of share groups of Kafka have
// no body by default, and never the headers of the sender: they name topic, partition and offset.
type Original struct {
	Key, Value []byte // nil differs from empty
	Headers    []RecordHeader
	Timestamp  time.Time
	Gone       string // why it cannot be had, as a clause; empty: it is here
}

// Pointer names the record that a dead record points to.
type Pointer struct {
	Channel   string
	Partition int32 // −1: unknown
	Offset    int64 // −1: unknown
}

// String returns channel, partition and offset, as [nixie.Origin] has them.
func (p Pointer) String() string {
	return locationOf(&Record{Channel: p.Channel, Partition: p.Partition, Offset: p.Offset})
}

// PointsTo reads from the headers of a dead record to which record it points, if to any.
func PointsTo(headers []RecordHeader) (to Pointer, points bool) {
	if !slices.ContainsFunc(headers, func(h RecordHeader) bool { return strings.Contains(h.Name, ShareHeaders) }) {
		return to, false // the common case
	}
	d, _ := readDeath(headers, true)
	return Pointer{d.Channel, d.Partition, d.Offset}, d.Format == shareFormat
}

// ShareHeaders is in the names of headers of share groups.
const ShareHeaders = "dlq.errors."

const shareFormat = "share"

// whole holds the parts of a dead record, or of the record that it points to.
type whole struct {
	key, value []byte
	sender     []RecordHeader // headers of the sender
	all        []RecordHeader // with those that tell how it died
	lacks      string         // what is missing and why, as a sentence; empty: nothing
	bodyAt     string         // where the body lies that is missing
}

// stand returns what a record stands for. Sender are the headers of the record that are of no
// format. What the original tells is added to its death.
func (r *Record) stand(d *Death, sender []RecordHeader) whole {
	w := whole{key: r.Key, value: r.Value, sender: sender, all: r.Headers}
	if at, tooLarge := headerValue(r.Headers, HeaderBodyAt); tooLarge {
		w.bodyAt, w.lacks = cmp.Or(at, "?"), lacksBody(at)
	}
	if d.Format != shareFormat {
		return w
	}
	o, copied, gone := r.Original, r.Key != nil || r.Value != nil, ""
	to := Pointer{d.Channel, d.Partition, d.Offset}.String()
	switch {
	case o == nil:
		gone = "it was not looked for"
	case o.Gone != "":
		gone = o.Gone
	case o.Timestamp.After(r.Timestamp):
		gone = fmt.Sprintf("the record there is younger than the letter, so the topic was made anew: %s is after %s",
			o.Timestamp.UTC().Format(time.RFC3339Nano), r.Timestamp.UTC().Format(time.RFC3339Nano))
	case copied && !(sameBytes(o.Key, r.Key) && sameBytes(o.Value, r.Value)):
		gone = "the record there is another one, so the topic was made anew"
	default:
		w.key, w.value, w.sender, w.all = o.Key, o.Value, senderHeaders(o.Headers), slices.Concat(o.Headers, r.Headers)
		d.Redrives = max(d.Redrives, headerCount(o.Headers, HeaderRedriveCount))
		d.Timestamp, d.FirstFailed = clampTime(o.Timestamp), headerTime(o.Headers, HeaderFirstFailureAt)
		return w
	}
	switch {
	case !copied:
		w.bodyAt = to
		w.lacks = "its body is not in its letter: it lay at " + to + ", and " + gone
	case len(sender) == 0:
		w.lacks = "its share group copied no headers: those of its sender lay at " + to + ", and " + gone
	}
	return w
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// mark puts the letter of a record that lacks something into review.
func (w *whole) mark(l *nixie.Letter) {
	if w.lacks == "" {
		return
	}
	l.NeedsReview, l.Redrivable, l.Note = true, w.bodyAt == "", w.lacks
	if l.Status == nixie.StatusOpen {
		l.Status = nixie.StatusReview
	}
	o := *l.Message.Origin
	o.BodyAt, l.Message.Origin = w.bodyAt, &o
}

// OperationOf returns the redrive that sent the record last, or the one that it points to.
func (r *Record) OperationOf() nixie.ID {
	if r.Original != nil {
		return OperationOf(r.Original.Headers)
	}
	return OperationOf(r.Headers)
}

// IsPointed reports whether a letter came from a share group. Its body may be known since, or be
// gone.
func IsPointed(l *nixie.Letter) bool { return l.Rule == shareFormat && l.Cause == nixie.CauseAdopted }

// MarkElsewhere corrects a letter that was adopted when pointers were taken for tombstones: its
// body is elsewhere. It reports whether it did.
func MarkElsewhere(l *nixie.Letter) bool {
	m := &l.Message
	o := m.Origin
	if !IsPointed(l) || o == nil || o.Server != "" || o.BodyAt != "" || o.Key != nil || l.Original != nil || len(m.Body) > 0 ||
		!isTombstone(m) {
		return false
	}
	to := Pointer{o.Channel, o.Partition, o.Offset}.String()
	w := whole{bodyAt: to, lacks: "its body is not in its letter: it lay at " + to + ", and it was not looked for"}
	w.mark(l)
	m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h nixie.Header) bool { return h.Name == HeaderTombstone })
	return true
}

func isTombstone(m *nixie.Message) bool {
	return slices.ContainsFunc(m.Headers, func(h nixie.Header) bool { return h.Name == HeaderTombstone })
}
