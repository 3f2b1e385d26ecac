package rabbitmq

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie/broker"
)

// fieldParts is the field with the parts of a record that we published, in JSON.
const fieldParts = "x-nixie-parts"

// parts are those of a record that a message has no other field for.
type parts struct {
	Nonce   string `json:"nonce,omitempty"` // names the record; a redriven one has its redrive ID instead
	At      int64  `json:"at,omitempty"`    // when it was published, in milliseconds since 1970
	Key     []byte `json:"key,omitempty"`
	NoKey   bool   `json:"no_key,omitempty"`
	NoValue bool   `json:"no_value,omitempty"`

	// Headers has all headers in their order, if a table could not say them: it has no order, each
	// name once, and no nil. Empty: they are in the table, sorted by name.
	Headers []sealed `json:"headers,omitempty"`
}

// sealed is a header, or points to the field of its name.
type sealed struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value,omitempty"`
	Nil   bool   `json:"nil,omitempty"`
	Field bool   `json:"field,omitempty"`
}

// maxFieldName is the most bytes of a field's name.
const maxFieldName = 255

// tableHolds reports whether headers come out of a table as they are. The order of ours means
// nothing.
func tableHolds(headers []broker.RecordHeader) bool {
	last := ""
	seen := map[string]bool{}
	for _, h := range headers {
		if seen[h.Name] || !fits(h) {
			return false
		}
		seen[h.Name] = true
		if !broker.Ours(h.Name) {
			if h.Name < last {
				return false
			}
			last = h.Name
		}
	}
	return true
}

func fits(h broker.RecordHeader) bool {
	return h.Value != nil && h.Name != "" && len(h.Name) <= maxFieldName && h.Name != fieldParts
}

// seal lists headers, and takes what is no field out of the table.
func (p *parts) seal(headers []broker.RecordHeader, table amqp.Table) {
	for _, h := range headers {
		if !fits(h) {
			delete(table, h.Name)
		}
	}
	for _, h := range headers {
		one := sealed{Name: []byte(h.Name)}
		value, there := table[h.Name]
		switch {
		case there && shown(value) == string(h.Value) && h.Value != nil:
			one.Field = true
		case h.Value == nil:
			one.Nil = true
		default:
			one.Value = h.Value
		}
		p.Headers = append(p.Headers, one)
	}
}

// write puts the parts into a table, unless the message says all of them.
func (p *parts) write(table amqp.Table) error {
	if p.Nonce == "" && p.NoKey && !p.NoValue && len(p.Headers) == 0 {
		return nil
	}
	text, err := json.Marshal(p)
	table[fieldParts] = string(text)
	return err
}

// readParts completes a record with its parts, and returns its nonce.
func readParts(text string, into *broker.Record) (nonce string) {
	var p parts
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		into.Damage = "its field " + fieldParts + " is broken: " + err.Error()
		return ""
	}
	if p.At > 0 {
		into.Timestamp = time.UnixMilli(p.At)
	}
	if !p.NoKey {
		into.Key = bytes.Clone(p.Key)
		if into.Key == nil {
			into.Key = []byte{}
		}
	}
	if p.NoValue {
		into.Value = nil
	}
	if len(p.Headers) > 0 {
		into.Headers = p.unseal(into.Headers)
	}
	return p.Nonce
}

// unseal returns the headers in their order. Fields that another program added come last.
func (p *parts) unseal(fields []broker.RecordHeader) (all []broker.RecordHeader) {
	named := map[string]bool{}
	for _, one := range p.Headers {
		name := string(one.Name)
		at := slices.IndexFunc(fields, func(h broker.RecordHeader) bool { return h.Name == name })
		named[name] = true
		switch {
		case one.Field && at >= 0:
			all = append(all, fields[at])
		case one.Field: // another program took it out
		case one.Nil:
			all = append(all, broker.RecordHeader{Name: name})
		default:
			all = append(all, broker.RecordHeader{Name: name, Value: append([]byte{}, one.Value...)})
		}
	}
	for _, h := range fields {
		if !named[h.Name] && !strings.HasPrefix(h.Name, propertyPrefix) {
			all = append(all, h)
		}
	}
	return all
}
