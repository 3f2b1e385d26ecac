package broker

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// loan is what is made of an item when it is handed out for the first time.
type loan struct {
	delivery nixie.Delivery
	origin   nixie.Origin
}

// loans are made some at a time: few enough that they are still near when they are
// filled, and that one which somebody keeps does not keep many.
type loans struct {
	made []loan
	left int // that are still to be asked for
}

const loansAtOnce = 34 // 27 kB: more would be large for the allocator

func (l *loans) next() *loan {
	if len(l.made) == 0 {
		l.made = make([]loan, min(l.left, loansAtOnce))
		l.left -= len(l.made)
	}
	one := &l.made[0]
	l.made = l.made[1:]
	return one
}

// fill makes the delivery of an item from its record. What was before comes from
// its headers, if it has waited on a stage.
func (i *item) fill(to *loan, f *Features, queue string, now time.Time) {
	i.delivery = &to.delivery
	r, m := i.record, &to.delivery.Message
	at := sane(r.Timestamp)
	o := &to.origin
	o.System, o.Channel, o.Partition, o.Offset, o.MessageID, o.Key, o.Timestamp = f.System, r.Channel, r.Partition, r.Offset, r.MessageID, r.Key, at
	m.ID, m.Queue, m.Body, m.Origin = r.ID, queue, r.Value, o
	if queue == "" {
		m.Queue = i.source()
	}
	if len(r.Key) > 0 {
		if key := string(r.Key); nixie.CheckName("key", key) == nil {
			m.Key = key
		}
	}
	m.State, m.Generation, m.EnqueuedAt, m.FirstReceivedAt = nixie.Leased, 1, at, now
	m.Crashes, m.Deliveries = crashes(r), max(r.PriorDeliveries, r.Crashes)
	m.Attempts = m.Deliveries - r.Crashes
	if len(r.Headers) > 0 {
		m.Headers = inbound(r.Headers)
		m.Redrives = count(r.Headers, HeaderRedriveCount)
		m.Generation = 1 + m.Redrives
	}
	if r.Value == nil { // not every store tells that from an empty one
		m.Headers = append(m.Headers, nixie.Header{Name: HeaderTombstone, Value: "true"})
	}
	if r.Source != "" {
		i.resume(r.Headers, now)
	}
}

// inBase64 begins the name of a header that is no text; the rest of the name, and
// the value after a dot, are in base64. A value that is nil has no dot.
const inBase64 = "x-nixie-base64-"

// inbound makes headers of a broker ours, which are text. Those that we wrote are
// left out.
func inbound(headers []RecordHeader) []nixie.Header {
	var out []nixie.Header
	for _, h := range headers {
		switch {
		case Ours(h.Name):
		case h.Name != "" && h.Value != nil && utf8.ValidString(h.Name) && utf8.Valid(h.Value) && !strings.HasPrefix(h.Name, inBase64):
			out = append(out, nixie.Header{Name: h.Name, Value: string(h.Value)})
		default:
			out = append(out, encoded(h))
		}
	}
	return out
}

func encoded(h RecordHeader) nixie.Header {
	e := nixie.Header{Name: inBase64 + base64.RawURLEncoding.EncodeToString([]byte(h.Name))}
	if h.Value != nil {
		e.Value = "." + base64.StdEncoding.EncodeToString(h.Value)
	}
	return e
}

// outbound is the inverse of inbound.
func outbound(headers []nixie.Header) []RecordHeader {
	var out []RecordHeader
	for _, h := range headers {
		if !Ours(h.Name) {
			out = append(out, decoded(h))
		}
	}
	return out
}

// decoded reads what encoded wrote. What only looks like that is a header as it is.
func decoded(h nixie.Header) RecordHeader {
	plain := RecordHeader{Name: h.Name, Value: []byte(h.Value)}
	text, ok := strings.CutPrefix(h.Name, inBase64)
	name, err := base64.RawURLEncoding.DecodeString(text)
	switch {
	case !ok || err != nil:
		return plain
	case h.Value == "":
		return RecordHeader{Name: string(name)}
	}
	value, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.Value, "."))
	if err != nil {
		return plain
	}
	return RecordHeader{Name: string(name), Value: value}
}

// parked is what is kept of an item in the store where it waits for its retry. Its
// key of deduplication is its place, so that it is not kept twice.
func (i *item) parked(queue string, st *nixie.Settlement) nixie.Message {
	d := i.delivery
	m := nixie.Message{
		Queue: queue, Type: d.Type, Key: d.Key, Body: d.Body, Origin: d.Origin,
		DedupeKey: d.ID.String(), Delay: st.Delay, Headers: slices.Clone(d.Headers),
	}
	if i.lane != nil {
		m.Stream = m.Key
	}
	for _, c := range [...]struct {
		name  string
		value int
	}{{HeaderAttempts, d.Attempts}, {HeaderDeliveries, d.Deliveries}, {HeaderCrashes, crashesAfter(st)}, {HeaderRedriveCount, d.Redrives}} {
		m.Headers = append(m.Headers, nixie.Header{Name: c.name, Value: strconv.Itoa(c.value)})
	}
	var w writer
	w.steps(d.Steps)
	for _, h := range w.headers {
		m.Headers = append(m.Headers, nixie.Header{Name: h.Name, Value: string(h.Value)})
	}
	return m
}
