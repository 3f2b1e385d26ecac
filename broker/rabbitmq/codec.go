package rabbitmq

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// A message has properties and a table of typed fields; a record has headers, which are names with
// bytes. These headers stand for what a table of text does not say. Fields of other senders whose
// names begin so are kept in headerTyped alone.
const (
	propertyPrefix = "amqp-"
	headerTyped    = propertyPrefix + "typed" // fields that are no text, see typed
	headerExpiry   = propertyPrefix + "expiration"
)

// property is one of a message that is text.
type property struct {
	name string
	of   func(*amqp.Publishing) *string
}

// properties list those that a record keeps as headers. Expiration and the user are special.
var properties = []property{
	{"content-type", func(m *amqp.Publishing) *string { return &m.ContentType }},
	{"content-encoding", func(m *amqp.Publishing) *string { return &m.ContentEncoding }},
	{"correlation-id", func(m *amqp.Publishing) *string { return &m.CorrelationId }},
	{"reply-to", func(m *amqp.Publishing) *string { return &m.ReplyTo }},
	{"message-id", func(m *amqp.Publishing) *string { return &m.MessageId }},
	{"type", func(m *amqp.Publishing) *string { return &m.Type }},
	{"app-id", func(m *amqp.Publishing) *string { return &m.AppId }},
	{"user-id", func(m *amqp.Publishing) *string { return &m.UserId }},
	{"expiration", func(m *amqp.Publishing) *string { return &m.Expiration }},
}

const (
	headerPriority  = propertyPrefix + "priority"
	headerTimestamp = propertyPrefix + "timestamp"
)

// ofServer reports whether the server writes fields of this name. No redrive sends them back: an
// older server would count on in them, and CC would bring a second copy.
func ofServer(name string) bool {
	switch name {
	case "CC", "BCC", fieldCount, "x-acquired-count":
		return true
	}
	return strings.HasPrefix(name, deathPrefix) || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// fieldCount is the field in which a quorum queue counts earlier deliveries.
const fieldCount = "x-delivery-count"

// decode makes a record of a message. It leaves out where the record lies and what it has been
// through: receivers know that.
func decode(d *amqp.Delivery, keyHeader string, now time.Time, into *broker.Record) (name string) {
	*into = broker.Record{Offset: -1, Value: d.Body, Timestamp: now}
	if d.Body == nil {
		into.Value = []byte{}
	}
	if !d.Timestamp.IsZero() {
		into.Timestamp = d.Timestamp
	}
	others := typed{}
	for _, field := range sortedNames(d.Headers) {
		value := d.Headers[field]
		text, isText := value.(string)
		switch {
		case field == fieldParts, ofServer(field) && field != "CC":
		case isText && (field == headerExpiry || !strings.HasPrefix(field, propertyPrefix)):
			into.Headers = append(into.Headers, broker.RecordHeader{Name: field, Value: []byte(text)})
		default:
			if packed, err := json.Marshal(pack(value)); err == nil {
				others[field] = packed
			}
			if !strings.HasPrefix(field, propertyPrefix) {
				into.Headers = append(into.Headers, broker.RecordHeader{Name: field, Value: []byte(shown(value))})
			}
		}
	}
	if sealed, ok := d.Headers[fieldParts].(string); ok {
		name = readParts(sealed, into)
	}
	if name == "" {
		name, _ = d.Headers[broker.HeaderRedriveID].(string)
	}
	if keyHeader != "" {
		for _, h := range into.Headers {
			if h.Name == keyHeader {
				into.Key = h.Value
			}
		}
	}
	addProperties(d, others, into)
	return name
}

// addProperties adds the headers that stand for properties and for fields that are no text.
func addProperties(d *amqp.Delivery, others typed, into *broker.Record) {
	tell := func(name, value string) {
		if value != "" {
			into.Headers = append(into.Headers, broker.RecordHeader{Name: name, Value: []byte(value)})
		}
	}
	m := amqp.Publishing{ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo,
		MessageId: d.MessageId, Type: d.Type, AppId: d.AppId, UserId: d.UserId, Expiration: d.Expiration}
	for _, p := range properties {
		tell(propertyPrefix+p.name, *p.of(&m))
	}
	if d.Priority > 0 {
		tell(headerPriority, strconv.Itoa(int(d.Priority)))
	}
	if !d.Timestamp.IsZero() {
		tell(headerTimestamp, strconv.FormatInt(d.Timestamp.Unix(), 10))
	}
	if len(others) > 0 {
		text, err := json.Marshal(others)
		if err == nil { // all of it is JSON
			tell(headerTyped, string(text))
		}
	}
}

// encode makes the message of a record. A redrive brings the expiration back, which then counts
// from now; elsewhere it waits in a header, so that no letter expires. User is that of the
// connection: the server refuses another one. Nonce names the record where no header does.
func encode(p *broker.Publication, user, nonce string, now time.Time) (amqp.Publishing, error) {
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Body: p.Value}
	var others typed
	var own []broker.RecordHeader // that go into the table
	for _, h := range p.Headers {
		switch {
		case ofServer(h.Name):
		case h.Name == headerTyped:
			_ = json.Unmarshal(h.Value, &others) // if a person wrote it wrongly, the fields go as text
		case h.Name == headerExpiry && p.Origin == nil:
			own = append(own, h)
		case setProperty(&m, h):
		default:
			own = append(own, h)
		}
	}
	if m.UserId != user {
		m.UserId = ""
	}
	for _, p := range properties {
		if n := len(*p.of(&m)); n > maxFieldName {
			return m, nixie.Errorf(nixie.CodeInvalid, "property %s has %d bytes, the limit is %d: shorten header %s%s",
				p.name, n, maxFieldName, propertyPrefix, p.name)
		}
	}
	for _, h := range own {
		m.Headers[h.Name] = others.field(h)
	}
	for name := range others {
		if _, there := m.Headers[name]; !there && strings.HasPrefix(name, propertyPrefix) {
			if value, ok := unpack(others[name], 0); ok {
				m.Headers[name] = value
			}
		}
	}
	about := parts{Key: p.Key, NoKey: p.Key == nil, NoValue: p.Value == nil}
	if !tableHolds(own) {
		about.seal(own, m.Headers)
	}
	if p.Origin == nil {
		about.Nonce, about.At = nonce, now.UnixMilli()
	}
	if err := about.write(m.Headers); err != nil {
		return m, err
	}
	if size := sizeOf(m.Headers); size > maxTable {
		return m, nixie.Errorf(nixie.CodeLimit, "headers have %d bytes: a message takes %d", size, maxTable)
	}
	return m, nil
}

// maxTable limits the headers of a message: with its properties they have to fit into one frame,
// which has 128 KiB unless the server was told otherwise.
const maxTable = 120 << 10

// field returns the field that a header was, or its text if a redrive changed it.
func (t typed) field(h broker.RecordHeader) any {
	if packed, ok := t[h.Name]; ok {
		if value, ok := unpack(packed, 0); ok && shown(value) == string(h.Value) {
			return value
		}
	}
	return string(h.Value)
}

// setProperty sets the property that a header stands for. It returns false if there is none.
func setProperty(m *amqp.Publishing, h broker.RecordHeader) bool {
	name, is := strings.CutPrefix(h.Name, propertyPrefix)
	if !is {
		return false
	}
	for _, p := range properties {
		if p.name == name {
			*p.of(m) = string(h.Value)
			return true
		}
	}
	n, err := strconv.ParseInt(string(h.Value), 10, 64)
	switch {
	case err != nil:
		return false
	case h.Name == headerTimestamp:
		m.Timestamp = time.Unix(n, 0)
	case h.Name == headerPriority && n >= 0 && n <= 255:
		m.Priority = uint8(n)
	default:
		return false
	}
	return true
}

// sizeOf estimates the bytes of a table.
func sizeOf(t amqp.Table) (size int) {
	for name, value := range t {
		const field = 8 // its type and sizes
		size += len(name) + field
		switch v := value.(type) {
		case string:
			size += len(v)
		default:
			size += len(shown(v))
		}
	}
	return size
}
