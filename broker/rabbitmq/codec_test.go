package rabbitmq

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// through sends a record through a message.
func through(t *testing.T, p *broker.Publication) broker.Record {
	t.Helper()
	m, err := encode(p, "", "a nonce", time.UnixMilli(1_700_000_000_123))
	if err != nil {
		t.Fatal(err)
	}
	var got broker.Record
	name := decode(&amqp.Delivery{Headers: m.Headers, Body: m.Body, Expiration: m.Expiration}, "", time.Now(), &got)
	if p.Origin == nil && (name != "a nonce" || got.Timestamp.UnixMilli() != 1_700_000_000_123) {
		t.Errorf("the message is named %q, of %s", name, got.Timestamp)
	}
	return got
}

// What a table cannot hold of a record comes out as it was.
func TestParts(t *testing.T) {
	for name, p := range map[string]broker.Publication{
		"plain":     {Key: []byte("k"), Value: []byte("v"), Headers: []broker.RecordHeader{{Name: "a", Value: []byte("1")}}},
		"empty":     {Key: []byte{}, Value: []byte{}},
		"tombstone": {},
		"out of row": {Value: []byte("v"), Headers: []broker.RecordHeader{
			{Name: "b", Value: []byte("1")}, {Name: "a", Value: []byte("2")}}},
		"odd": {Value: []byte("v"), Headers: []broker.RecordHeader{
			{Name: "a", Value: []byte("1")}, {Name: "A", Value: []byte("2")}, {Name: "a", Value: []byte{0, 0xff}}, {Name: "nil"},
			{Name: "", Value: []byte("no name")}, {Name: fieldParts, Value: []byte("theirs")}, {Name: "\xff", Value: []byte{}},
		}},
		"expires later": {Value: []byte("v"), Headers: []broker.RecordHeader{{Name: headerExpiry, Value: []byte("5")}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := through(t, &p)
			if !reflect.DeepEqual(got.Key, p.Key) || !reflect.DeepEqual(got.Value, p.Value) || len(got.Headers) != len(p.Headers) ||
				len(p.Headers) > 0 && !reflect.DeepEqual(got.Headers, p.Headers) || got.Damage != "" {
				t.Errorf("%+v\nwant\n%+v", got, p)
			}
		})
	}
}

// A redrive adds no field of ours but those that say so, and lets the message expire again.
func TestRedriveIsPlain(t *testing.T) {
	m, err := encode(&broker.Publication{Value: []byte("v"), Origin: &nixie.Origin{}, Headers: []broker.RecordHeader{
		{Name: "a", Value: []byte("1")}, {Name: headerExpiry, Value: []byte("5000")}, {Name: "amqp-user-id", Value: []byte("bob")},
		{Name: broker.HeaderRedriveCount, Value: []byte("1")}, {Name: deathWhy, Value: []byte("x")},
		{Name: "x-first-death-queue", Value: []byte("q")}, {Name: "CC", Value: []byte(`["other"]`)}, {Name: "BCC", Value: []byte("other")},
	}}, "ann", "a nonce", time.Now())
	want := amqp.Table{"a": "1", broker.HeaderRedriveCount: "1"}
	if err != nil || !reflect.DeepEqual(m.Headers, want) || m.Expiration != "5000" || m.UserId != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A broken field of ours is told and costs nothing.
func TestBrokenParts(t *testing.T) {
	var got broker.Record
	decode(&amqp.Delivery{Headers: amqp.Table{fieldParts: "{", "a": "1"}, Body: []byte("v")}, "", time.Now(), &got)
	if got.Damage == "" || string(got.Value) != "v" || len(got.Headers) != 1 {
		t.Errorf("%+v", got)
	}
}

// FuzzTyped reads types from anywhere. What can be read is written so that it reads the same.
func FuzzTyped(f *testing.F) {
	for _, value := range []any{nil, true, uint8(1), int8(-1), int16(2), uint16(3), int32(4), uint32(5), int64(6), float32(0.5), 0.1,
		amqp.Decimal{Scale: 1, Value: 2}, "s", "\xff", []byte{1}, time.Unix(7, 0), []any{"a", nil}, amqp.Table{"\xfe": int32(1)}} {
		text, err := json.Marshal(pack(value))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, ok := unpack(text, 0)
		if !ok {
			return
		}
		again, err := json.Marshal(pack(value))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := unpack(again, 0); !ok || shown(got) != shown(value) {
			t.Errorf("%s is %v, and then %v", text, value, got)
		}
		_ = shown(value)
	})
}

// FuzzDeath reads x-death from anywhere: it never fails, and names one cause.
func FuzzDeath(f *testing.F) {
	f.Add([]byte(`["A",["F","cXVldWU=",["S","orders"],"cmVhc29u",["S","rejected"],"Y291bnQ=",["l",3],"dGltZQ==",["T",1700000000]]]`))
	f.Add([]byte(`["A",["S","no table"],["F","Y291bnQ=",["l",-3]]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		value, ok := unpack(text, 0)
		if !ok {
			return
		}
		var got broker.Record
		headers := amqp.Table{"x-death": value, "x-first-death-queue": value}
		from := &amqp.Delivery{Headers: headers, Body: text}
		decode(from, "", time.UnixMilli(1), &got)
		tellDeath(from, &got)
		l := broker.Adopted("rabbitmq", &got, "q")
		if l.Fingerprint == "" || l.Message.Queue == "" {
			t.Errorf("%+v", l)
		}
		for _, d := range deathsOf(headers) {
			if d.Count < 0 {
				t.Errorf("count %d", d.Count)
			}
		}
	})
}
