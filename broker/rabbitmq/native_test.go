package rabbitmq_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/rabbitmq"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// full is a message that uses all that AMQP has.
func full() amqp.Publishing {
	return amqp.Publishing{
		ContentType: "application/json", ContentEncoding: "identity", CorrelationId: "c-1", ReplyTo: "answers", MessageId: "m-1",
		Type: "order.made", AppId: "shop", Priority: 3, Timestamp: time.Unix(1_700_000_000, 0), DeliveryMode: amqp.Persistent,
		Body: []byte{'{', 0, 0xff, '}'},
		Headers: amqp.Table{
			"text": "v", "empty": "", "not utf8": "\xff\x00", "yes": true, "byte": uint8(7), "int8": int8(-7), "int16": int16(-300),
			"int32": int32(-70_000), "int64": int64(1) << 60, "float": float32(1.5), "double": 0.1,
			"decimal": amqp.Decimal{Scale: 2, Value: 12345},
			"nothing": nil, "bytes": []byte{0, 1, 2}, "time": time.Unix(1_600_000_000, 0),
			"table": amqp.Table{"a": []any{"b", int32(1), amqp.Table{"c": nil}}, "\xfe": "d"}, "list": []any(nil),
			"amqp-type": "theirs", "amqp-typed": "theirs", "Ünï": "x",
		},
	}
}

// sameMessage compares all that a sender gave.
func sameMessage(t *testing.T, what string, got *amqp.Delivery, want *amqp.Publishing) {
	t.Helper()
	have := amqp.Publishing{
		ContentType: got.ContentType, ContentEncoding: got.ContentEncoding, CorrelationId: got.CorrelationId, ReplyTo: got.ReplyTo,
		MessageId: got.MessageId, Type: got.Type, AppId: got.AppId, Priority: got.Priority, Timestamp: got.Timestamp,
		DeliveryMode: got.DeliveryMode, Expiration: got.Expiration, UserId: got.UserId, Headers: amqp.Table{}, Body: got.Body,
	}
	for name, value := range got.Headers {
		if !broker.Ours(name) && name != "x-delivery-count" {
			have.Headers[name] = value
		}
	}
	wanted := *want
	wanted.Timestamp, have.Timestamp = wanted.Timestamp.UTC(), have.Timestamp.UTC()
	if !reflect.DeepEqual(have, wanted) {
		t.Errorf("%s:\n%#v\nwant\n%#v", what, have, wanted)
	}
}

// office takes in dead letter queues.
type office struct {
	t  *testing.T
	st *memory.Store
}

func newOffice(t *testing.T) *office { return &office{t, memory.New(memory.Options{})} }

// adopt takes in a queue.
func (o *office) adopt(at rabbitmq.Address) (letters []nixie.Letter) {
	o.t.Helper()
	r, err := rabbitmq.Read(o.t.Context(), at)
	if err != nil {
		o.t.Fatal(err)
	}
	defer r.Close()
	for {
		records, err := r.Next(limited(o.t), 50)
		if err != nil {
			o.t.Fatal(err)
		}
		if len(records) == 0 {
			return letters
		}
		var done []*broker.Record
		for i := range records {
			l := broker.Adopted("rabbitmq", &records[i], "")
			got, errs := o.st.Adopt(o.t.Context(), []nixie.Letter{l}, "ann", "adopted")
			if errs[0] != nil || got[0].Duplicate {
				o.t.Fatal(got, errs)
			}
			letters, done = append(letters, l), append(done, &records[i])
		}
		if err := r.Done(limited(o.t), done); err != nil {
			o.t.Fatal(err)
		}
	}
}

// back redrives all letters to where they died.
func (o *office) back(at rabbitmq.Address, channel string) {
	o.t.Helper()
	to, err := rabbitmq.Connect(at)
	if err != nil {
		o.t.Fatal(err)
	}
	defer to.Close()
	send, err := redrive.Destination{To: to, Channel: channel}.Letters()
	if err != nil {
		o.t.Fatal(err)
	}
	letters, _, err := o.st.Letters(o.t.Context(), nixie.Filter{}, store.Page{Bodies: true})
	if err != nil || len(letters) == 0 {
		o.t.Fatal(len(letters), err)
	}
	for _, err := range send(limited(o.t), letters) {
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// natives are the ways in which RabbitMQ itself makes a dead letter.
var natives = []struct {
	name, kind string
	args       amqp.Table
	expiration string
	kill       func(r *raw, queue string)
	cause      nixie.Reason
	says       string
}{
	{"rejected", "quorum", nil, "", func(r *raw, queue string) {
		d := r.take(queue)
		if err := d.Reject(false); err != nil {
			r.t.Fatal(err)
		}
	}, nixie.ReasonHandler, "rejected by a consumer of "},
	{"rejected, classic", "classic", nil, "60000", func(r *raw, queue string) {
		d := r.take(queue)
		if err := d.Nack(false, false); err != nil {
			r.t.Fatal(err)
		}
	}, nixie.ReasonHandler, "rejected by a consumer of "},
	{"expired", "quorum", amqp.Table{"x-message-ttl": int32(20)}, "", func(*raw, string) {}, nixie.ReasonMaxAge, "expired in "},
	{"expired by itself", "quorum", nil, "20", func(*raw, string) {}, nixie.ReasonMaxAge, "expired in "},
	{"pushed out", "classic", amqp.Table{"x-max-length": int32(1)}, "", func(r *raw, queue string) {
		r.put(queue, amqp.Publishing{Body: []byte("one more")})
	}, nixie.ReasonResource, "pushed out of "},
	{"returned too often", "quorum", amqp.Table{"x-delivery-limit": int32(2)}, "", func(r *raw, queue string) {
		for range 3 {
			d := r.take(queue)
			if err := d.Nack(false, true); err != nil {
				r.t.Fatal(err)
			}
		}
	}, nixie.ReasonUnknown, "more often than its delivery limit"},
}

// TestNative takes in what RabbitMQ itself put into a dead letter queue, for each reason that it
// has, and sends it back: body, properties and headers are those of the sender.
func TestNative(t *testing.T) {
	for _, c := range natives {
		t.Run(c.name, func(t *testing.T) {
			r := actual(t)
			dead := r.declare(nil)
			args := amqp.Table{"x-queue-type": c.kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
			for name, value := range c.args {
				args[name] = value
			}
			source := r.declare(args)
			sent := full()
			sent.Expiration = c.expiration
			r.put(source, sent)
			c.kill(r, source)
			r.until("a dead letter", func() bool { return r.ready(dead) == 1 })
			o := newOffice(t)
			letters := o.adopt(r.on(dead))
			if len(letters) != 1 || r.ready(dead) != 0 {
				t.Fatalf("%d letters, and %d messages are left", len(letters), r.ready(dead))
			}
			l := &letters[0]
			says := l.History[0].Text
			if l.Rule != "rabbitmq" || l.Reason != c.cause || !strings.Contains(says, c.says) || l.Message.Queue != source ||
				l.Message.Origin.Channel != source || time.Since(l.DiedAt) > time.Minute || l.Message.Origin.Server == "" {
				t.Errorf("%s %q of %q (%q), died %s: %+v", l.Reason, says, l.Message.Queue, l.Rule, l.DiedAt, l.Message.Origin)
			}
			if c.name == "expired" || c.name == "pushed out" { // there it would die again at once
				source = r.declare(nil)
				o.back(r.at, source)
			} else {
				o.back(r.at, "")
			}
			if c.name == "expired by itself" { // it counts from the redrive, and dies again
				r.until("its next death", func() bool { return r.ready(dead) == 1 })
				again := o.adopt(r.on(dead))
				if len(again) != 1 || again[0].Message.Redrives != 1 {
					t.Errorf("died again: %+v", again)
				}
				return
			}
			got := r.take(source)
			sameMessage(t, "sent back", &got, &sent)
			if got.Headers[broker.HeaderRedriveCount] != "1" {
				t.Errorf("redriven %v times", got.Headers[broker.HeaderRedriveCount])
			}
		})
	}
}

// A letter in a cycle of retries tells its failure and not the end of the last wait, and the queue
// where it died first.
func TestCycle(t *testing.T) {
	r := actual(t)
	source, wait, dead := r.declare(nil), r.declare(nil), r.declare(nil)
	_, err := r.ch.QueueDelete(source, false, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ch.QueueDelete(wait, false, false, false); err != nil {
		t.Fatal(err)
	}
	r.declareAs(source, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait})
	r.declareAs(wait, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": source, "x-message-ttl": int32(10)})
	r.put(source, amqp.Publishing{Body: []byte("b")})
	for range 3 {
		d := r.take(source)
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
	}
	last := r.take(source) // a consumer gives up, and publishes what it got
	r.put(dead, amqp.Publishing{Body: last.Body, Headers: last.Headers})
	if err := last.Ack(false); err != nil {
		t.Fatal(err)
	}
	l := newOffice(t).adopt(r.on(dead))[0]
	if l.Message.Queue != source || l.Reason != nixie.ReasonHandler || l.History[0].Text != "rejected by a consumer of "+source {
		t.Errorf("%s of %s: %q", l.Reason, l.Message.Queue, l.History[0].Text)
	}
	if !slices.ContainsFunc(l.History[0].Context, func(s string) bool { return strings.Contains(s, `"count":3`) }) {
		t.Errorf("the count is lost: %q", l.History[0].Context)
	}
}

// What would bring a message twice, or end the connection, stays behind.
func TestNothingOfTheServerGoesBack(t *testing.T) {
	r := actual(t)
	dead, copies := r.declare(nil), r.declare(nil)
	source := r.declare(amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	r.put(source, amqp.Publishing{Body: []byte("b"), UserId: "guest", Headers: amqp.Table{"CC": []any{copies}, "mine": "x"}})
	d := r.take(source)
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
	r.until("the copy", func() bool { return r.ready(copies) == 1 && r.ready(dead) == 1 })
	o := newOffice(t)
	o.adopt(r.on(dead))
	o.back(r.at, "")
	got := r.take(source)
	want := amqp.Publishing{Body: []byte("b"), UserId: "guest", Headers: amqp.Table{"mine": "x"}, DeliveryMode: amqp.Persistent}
	sameMessage(t, "sent back", &got, &want)
	if n := r.ready(copies); n != 1 {
		t.Errorf("the other queue has %d messages, want 1", n)
	}
}

// Each record that is sent gets an answer of its own.
func TestPublishAnswersEach(t *testing.T) {
	r := actual(t)
	queue := r.declare(nil)
	to, err := rabbitmq.Connect(r.at)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	large := make([]byte, 2<<20)
	list := []broker.Publication{
		{Channel: queue, Value: []byte("one")}, {Channel: queue + "-none", Value: []byte("two")}, {Channel: queue, Value: large},
		{Channel: queue, Value: []byte("three")}, {Channel: queue, Value: []byte("four"), Headers: []broker.RecordHeader{
			{Name: "amqp-reply-to", Value: []byte(strings.Repeat("x", 300))}}},
		{Channel: queue, Headers: []broker.RecordHeader{{Name: "h", Value: make([]byte, 200<<10)}}},
		{Channel: queue, Value: []byte("five")},
	}
	for round := range 2 {
		var codes []nixie.Code
		for _, err := range to.Publish(limited(t), list)() {
			codes = append(codes, nixie.CodeOf(err))
		}
		want := []nixie.Code{"", nixie.CodeNotFound, nixie.CodeLimit, "", nixie.CodeInvalid, nixie.CodeLimit, ""}
		if fmt.Sprint(codes) != fmt.Sprint(want) {
			t.Errorf("round %d: %q, want %q", round, codes, want)
		}
	}
	if n := r.ready(queue); n != 6 {
		t.Errorf("%d arrived, want 6", n)
	}
	described, err := to.Describe(limited(t), []string{queue, queue + "-none"})
	if err != nil || described[0].Missing || !described[1].Missing {
		t.Errorf("described %+v, %v", described, err)
	}
}
