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

// newDelivery holds what the source allocates when it delivers an item for the first time.
type newDelivery struct {
	delivery nixie.Delivery
	origin   nixie.Origin
}

// deliveryAllocator allocates several deliveries at a time. They are few enough to be in the
// processor's cache when they are filled. A caller that keeps one of them keeps few others in
// memory.
type deliveryAllocator struct {
	made []newDelivery
	left int // how many more the call needs
}

const deliveriesAtOnce = 27 // 27 kB: Go allocates larger objects more slowly

func (l *deliveryAllocator) next() *newDelivery {
	if len(l.made) == 0 {
		l.made = make([]newDelivery, min(l.left, deliveriesAtOnce))
		l.left -= len(l.made)
	}
	one := &l.made[0]
	l.made = l.made[1:]
	return one
}

// fill makes the delivery of an item from its record. If the record has waited on a stage, its
// headers tell what happened before.
func (i *item) fill(to *newDelivery, f *Features, queue string, now time.Time) {
	i.delivery = &to.delivery
	r, m := i.record, &to.delivery.Message
	at := clampTime(r.Timestamp)
	o := &to.origin
	o.System, o.Channel, o.Partition, o.Offset, o.MessageID, o.Key, o.Timestamp, o.Server = f.System, r.Channel, r.Partition, r.Offset,
		r.MessageID, r.Key, at, r.Server
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
	attempts := max(r.PriorDeliveries, r.Crashes)
	m.Crashes, m.Deliveries, m.Attempts = totalCrashes(r), attempts+r.Releases, attempts-r.Crashes
	m.Patience = r.Patience
	i.remember(nil, m.Attempts)
	if len(r.Headers) > 0 {
		m.Headers = inbound(r.Headers)
		m.Redrives = headerCount(r.Headers, HeaderRedriveCount)
		if kind := m.Header(HeaderType); kind != "" && nixie.CheckName("type", kind) == nil {
			m.Type = kind
		}
		if m.Generation = 1 + m.Redrives; m.Redrives > 0 {
			to.delivery.Operation, to.delivery.FirstFailedAt = OperationOf(r.Headers), headerTime(r.Headers, HeaderFirstFailureAt)
			if back := headerTime(r.Headers, HeaderRedrivenAt); !back.After(now) {
				m.RedrivenAt = back
			}
		}
	}
	if r.Value == nil { // not every store distinguishes nil from empty
		m.Headers = append(m.Headers, nixie.Header{Name: HeaderTombstone, Value: "true"})
	}
	if r.Source != "" {
		i.resumeFromStage(r.Headers, now)
	}
	switch {
	case r.Damage != "": // whose time may be a part of it
		to.delivery.Damage = []string{r.Damage}
	case r.Retention > 0:
		m.ExpiresAt = m.EnqueuedAt.Add(r.Retention)
	}
}

// inBase64 begins the name of a header that is not text. The rest of the name, and the value after
// a dot, are in base64. A nil value has no dot.
const inBase64 = "x-nixie-base64-"

// inbound converts headers of a broker to text headers, without those that we wrote.
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

// decoded reads what encoded wrote. A header that only looks like it stays as it is.
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

// parkedMessage makes the message that waits in a store for the retry of an item. Its dedupe key is
// the ID of the record, so the store keeps it once.
func (i *item) parkedMessage(queue string, st *nixie.Settlement, now time.Time) nixie.Message {
	d := i.delivery
	patience, attempts := i.after(st, now)
	m := nixie.Message{
		Queue: queue, Type: d.Type, Key: d.Key, Body: d.Body, Origin: d.Origin,
		DedupeKey: d.ID.String(), Delay: st.Delay, Headers: slices.Clone(d.Headers),
	}
	if i.serial != nil {
		m.Stream = m.Key
	}
	for _, c := range [...]struct {
		name  string
		value int
	}{{HeaderAttempts, attempts}, {HeaderDeliveries, d.Deliveries}, {HeaderCrashes, crashesAfter(st)}, {HeaderRedriveCount, d.Redrives}} {
		m.Headers = append(m.Headers, nixie.Header{Name: c.name, Value: strconv.Itoa(c.value)})
	}
	var w headerWriter
	w.steps(d.Steps)
	w.patience(patience)
	w.time(HeaderRedrivenAt, d.RedrivenAt)
	w.operation(i.record.Headers)
	w.time(HeaderFirstFailureAt, d.FirstFailedAt)
	for _, h := range w.headers {
		m.Headers = append(m.Headers, nixie.Header{Name: h.Name, Value: string(h.Value)})
	}
	return m
}
