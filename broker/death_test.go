package broker

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
)

func four(n int32) string  { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func eight(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// written holds headers as each format is published; formats.go names the sources.
var written = []struct {
	format  string
	headers [][2]string
	want    string // channel/partition/offset reason type text attempts redrives
}{
	{"nixie", [][2]string{{"x-original-topic", "t"}, {"x-original-partition", "2"}, {"x-original-offset", "9"},
		{"x-failure-reason", "permanent_error"}, {"x-nixie-reason", "validation"}, {"x-failure-class", "permanent"}, {"x-exception", "E"},
		{"x-exception-message", "no"}, {"x-attempts", "3"}, {"X-Redrive-Count", "4"},
		{"x-redrive-count", "2"}}, "t/2/9 validation E no 3 2"},
	{"nixie", [][2]string{{"x-original-topic", "t"}, {"x-original-partition", "0"}, {"x-original-offset", "1"},
		{"x-failure-reason", "transient_max_retries"}, {"x-exception", "TransientException"},
		{"x-message-key", ""}}, "t/0/1 handler TransientException transient_max_retries 0 0"},
	{"spring", [][2]string{{"kafka_dlt-original-topic", "t"}, {"kafka_dlt-original-partition", four(7)},
		{"kafka_dlt-original-offset", eight(1 << 40)}, {"kafka_dlt-original-timestamp", eight(1_700_000_000_000)},
		{"kafka_dlt-exception-fqcn", "a.b.ValidationException"},
		{"kafka_dlt-exception-message", "no"}}, "t/7/1099511627776 validation a.b.ValidationException no 0 0"},
	{"spring", [][2]string{{"kafka_dlt-original-topic", "old"}, {"kafka_dlt-original-topic", "t"}, {"kafka_dlt-original-partition", "3"},
		{"kafka_dlt-original-offset", "12345678"}, {"kafka_dlt-exception-fqcn", "X"}}, "t/3/3544952156018063160 handler X  0 0"},
	{"spring", [][2]string{{"kafka_original-topic", "t"}, {"kafka_original-partition", four(1)}, {"kafka_original-offset", eight(5)},
		{"kafka_exception-fqcn", "java.util.concurrent.TimeoutException"}, {"kafka_exception-message", "slow"},
		{"retry_topic-attempts", four(4)}}, "t/1/5 timeout java.util.concurrent.TimeoutException slow 3 0"},
	{"connect", [][2]string{{"__connect.errors.topic", "t"}, {"__connect.errors.partition", "1"}, {"__connect.errors.offset", "12"},
		{"__connect.errors.stage", "VALUE_CONVERTER"}, {"__connect.errors.exception.class.name", "o.a.k.connect.errors.DataException"},
		{"__connect.errors.exception.message", "bad"}}, "t/1/12 serialization o.a.k.connect.errors.DataException bad 0 0"},
	{"streams", [][2]string{{"__streams.errors.topic", "t"}, {"__streams.errors.partition", "0"}, {"__streams.errors.offset", "3"},
		{"__streams.errors.exception", "E"}, {"__streams.errors.message", "m"},
		{"__streams.errors.stacktrace", "s"}}, "t/0/3 handler E m 0 0"},
	{"share", [][2]string{{"__dlq.errors.topic", "t"}, {"__dlq.errors.partition", "0"}, {"__dlq.errors.offset", "3"},
		{"__dlq.errors.group", "g"}, {"__dlq.errors.delivery.count", "5"}, {"__dlq.errors.message", "m"}}, "t/0/3 unknown  m 5 0"},
	{"share", [][2]string{{"_dlq.errors.original.topic", "t"}, {"_dlq.errors.original.partition", "1"},
		{"_dlq.errors.original.offset", "2"}, {"_dlq.errors.disposition", "REJECTED"}}, "t/1/2 unknown  REJECTED 0 0"},
	{"watermill", [][2]string{{"topic_poisoned", "t"}, {"reason_poisoned", "why"}, {"handler_poisoned", "h"}, {"subscriber_poisoned", "s"},
		{"_watermill_requeuer_retries", "2"}}, "t/-1/-1 unknown  why 0 2"},
	{"masstransit", [][2]string{{"MT-Reason", "fault"}, {"MT-Fault-InputAddress", "rabbitmq://localhost/v/t?durable=true"},
		{"MT-Fault-ExceptionType", "System.TimeoutException"}, {"MT-Fault-Message", "m"},
		{"MT-Fault-RetryCount", "3"}}, "t/-1/-1 timeout System.TimeoutException m 3 0"},
	{"wolverine", [][2]string{{"original-destination", "kafka://topic/t"}, {"original-partition", "1"}, {"original-offset", "4"},
		{"exception-type", "E"}, {"exception-message", "m"}, {"attempts", "3"}}, "t/1/4 handler E m 3 0"},
	{"ad-hoc", [][2]string{{"x-original-topic", "t"}, {"x-retry-count", "3"}, {"x-dead-letter-reason", "because"}},
		"t/-1/-1 unknown  because 3 0"},
	{"job-queue", [][2]string{{"job-system", "rq"}, {"x-original-topic", "t"}, {"x-original-offset", "1700000000000"},
		{"x-exception", "E"}, {"x-exception-message", "m"}, {"x-attempts", "3"}}, "t/-1/1700000000000 handler E m 3 0"},
	{"spring-amqp", [][2]string{{"x-original-exchange", ""}, {"x-original-routingKey", "t"}, {"x-exception-message", "no"},
		{"x-exception-stacktrace", "s"}}, "t/-1/-1 unknown  no 0 0"},
	{"rabbitmq", [][2]string{{"x-death-origin", "t"}, {"x-death-cause", "handler"}, {"x-death-why", "rejected by a consumer of t"},
		{"x-death-at", "1700000000000"}, {"x-death-entries", "[]"}}, "t/-1/-1 handler  rejected by a consumer of t 0 0"},
	{"", [][2]string{{"a", "b"}}, "orders/-1/-1 unknown   0 0"},
}

func headersOf(pairs [][2]string) (out []RecordHeader) {
	for _, p := range pairs {
		out = append(out, RecordHeader{p[0], []byte(p[1])})
	}
	return out
}

// The package reads each format, an office takes its letter, and the headers of the sender stay.
func TestFormats(t *testing.T) {
	seen := map[string]bool{"": true}
	for n, w := range written {
		theirs := RecordHeader{"theirs", []byte{0xff}}
		r := &Record{Channel: "orders.dlq", Partition: 1, Offset: int64(n), Key: []byte("k"), Value: []byte("v"),
			ID: [16]byte{1, 15: byte(n)}, Timestamp: time.UnixMilli(1_700_000_000_000), Headers: append(headersOf(w.headers), theirs)}
		seen[w.format] = true
		l := Adopted("kafka", r, "")
		o, f := l.Message.Origin, &l.History[0]
		got := fmt.Sprintf("%s/%d/%d %s %s %s %d %d", o.Channel, o.Partition, o.Offset, l.Reason, f.Type, f.Text, l.Message.Attempts,
			l.Message.Redrives)
		if got != w.want || l.Rule != w.format {
			t.Errorf("%s: %s %q, want %q", w.format, l.Rule, got, w.want)
		}
		if err := check.Letter(&l); err != nil {
			t.Errorf("%s: %v", w.format, err)
		}
		back, again := FromRecord(r), FromLetter(&l)
		for _, b := range []*Returning{&back, &again} {
			p := b.Redriven(time.UnixMilli(1))
			if b.Letter != l.ID || b.Origin.Channel != o.Channel ||
				!slices.ContainsFunc(p.Headers, func(h RecordHeader) bool {
					return h.Name == "theirs" && len(h.Value) == 1 &&
						h.Value[0] == 0xff
				}) {
				t.Errorf("%s: %+v", w.format, b)
			}
			for _, h := range p.Headers {
				if w.format != "" && !Ours(h.Name) && h.Name != "theirs" && h.Name != "job-system" {
					t.Errorf("%s: header %s is left", w.format, h.Name)
				}
			}
		}
		if a, b := back.Redriven(time.UnixMilli(1)),
			again.Redriven(time.UnixMilli(1)); fmt.Sprintf("%q", a.Headers) != fmt.Sprintf("%q", b.Headers) {
			t.Errorf("%s: from the topic %q, from the office %q", w.format, a.Headers, b.Headers)
		}
	}
	for _, name := range Formats() {
		if !seen[name] {
			t.Errorf("format %s is not tested", name)
		}
	}
}

func TestSourceOf(t *testing.T) {
	for name, want := range map[string]string{"a.dlq": "a", "a.DLQ": "a", "a-dlq": "a", "a-dlt": "a", "a.DLT": "a", "a.b.dlq": "a.b",
		"dlq": "", "adlq": "", "a": ""} {
		if got := SourceOf(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// S17: there is one count of redrives, the last header counts, and it grows with each generation,
// even if another program handled the record in between.
func TestS17_OneCountOfRedrives(t *testing.T) {
	r := &Record{Channel: "in.dlq", ID: [16]byte{1}, Timestamp: time.UnixMilli(1_700_000_000_000),
		Headers: headersOf([][2]string{{"x-original-topic", "in"}, {"x-failure-reason", "x"}, {"x-first-failure-at", "1600000000000"}})}
	ids := map[string]bool{}
	for generation := 1; generation <= 50; generation++ {
		back := FromRecord(r)
		p := back.Redriven(time.UnixMilli(int64(generation)))
		counts := 0
		for _, h := range p.Headers {
			if strings.EqualFold(h.Name, HeaderRedriveCount) {
				counts++
			}
			if h.Name == HeaderRedriveID {
				ids[string(h.Value)] = true
			}
		}
		if counts != 1 || headerNumber(p.Headers, HeaderRedriveCount) != int64(generation) ||
			headerNumber(p.Headers, HeaderRedrivenAt) != int64(generation) ||
			headerNumber(p.Headers, HeaderFirstFailureAt) != 1600000000000 ||
			len(p.Headers) > 10 {
			t.Fatalf("generation %d: %q", generation, p.Headers)
		}
		if again := back.Redriven(time.UnixMilli(99)); headerNumber(again.Headers, HeaderRedriveCount) != int64(generation) {
			t.Fatalf("a repeat counts: %q", again.Headers)
		}
		r.Headers = append(p.Headers, RecordHeader{"x-failure-reason", []byte("x")}) // it dies again
	}
	if len(ids) != 50 {
		t.Errorf("%d redrive IDs", len(ids))
	}
}

// A record survives the office. A nil value stays different from an empty one, even though some
// stores confuse them.
func TestReturningIsWhole(t *testing.T) {
	for _, r := range []*Record{
		{Key: nil, Value: nil}, {Key: []byte{}, Value: []byte{}}, {Key: []byte{0xff, 0}, Value: []byte{0xff}},
		{Headers: []RecordHeader{{"a", nil}, {"a", []byte{}}, {"", []byte("x")}, {"\xff", []byte{0}}, {"x-nixie-base64-YQ", []byte("real")},
			{"A", []byte("2")}}},
	} {
		r.Channel, r.Timestamp = "in.dlq", time.UnixMilli(1_700_000_000_000)
		l := Adopted("kafka", r, "")
		if l.Message.Body == nil { // as the SQL stores return it
			l.Message.Body = []byte{}
		}
		a, b := FromRecord(r), FromLetter(&l)
		if fmt.Sprintf("%#v", a.Publication) != fmt.Sprintf("%#v", b.Publication) &&
			!(len(a.Headers) == 0 && len(b.Headers) == 0 &&
				fmt.Sprintf("%#v%#v", a.Key, a.Value) == fmt.Sprintf("%#v%#v", b.Key, b.Value)) {
			t.Errorf("from the topic\n%#v\nfrom the office\n%#v", a.Publication, b.Publication)
		}
	}
}

// An office adopts records of a topic with the longest possible name and large offsets, and two
// positions have two names.
func TestLongestChannel(t *testing.T) {
	seen := map[string]bool{}
	for _, offset := range []int64{1, math.MaxInt64 - 1, math.MaxInt64} {
		r := &Record{Channel: strings.Repeat("t", 249), Partition: 12345, Offset: offset, Timestamp: time.UnixMilli(1_700_000_000_000),
			Value: []byte("v"), ID: [16]byte{1}}
		l := Adopted("kafka", r, "q")
		if err := check.Letter(&l); err != nil {
			t.Error(err)
		}
		seen[l.Message.Origin.MessageID] = true
	}
	if len(seen) != 3 {
		t.Errorf("names: %v", seen)
	}
}

// An office takes the letter of any headers, unless it is too large. A redrive of its record keeps
// the headers of the sender.
func FuzzDeath(f *testing.F) {
	for _, w := range written {
		for n, h := range w.headers {
			other := w.headers[(n+1)%len(w.headers)]
			f.Add(h[0], []byte(h[1]), other[0], []byte(other[1]), "t.dlq", int64(1_700_000_000_000))
		}
	}
	f.Fuzz(func(t *testing.T, name string, value []byte, other string, second []byte, channel string, at int64) {
		r := &Record{Channel: channel, Timestamp: time.UnixMilli(at), Value: []byte("v"), ID: [16]byte{1},
			Headers: []RecordHeader{{name, value}, {other, second}, {"theirs", []byte{0xfe}}}}
		l := Adopted("kafka", r, "q")
		if err := check.Letter(&l); err != nil && nixie.CodeOf(err) != nixie.CodeLimit && nixie.CheckName("channel", channel) == nil {
			t.Fatal(err)
		}
		back := FromRecord(r)
		p := back.Redriven(time.UnixMilli(5))
		if headerNumber(p.Headers, HeaderRedriveCount) < 1 ||
			!slices.ContainsFunc(p.Headers, func(h RecordHeader) bool { return h.Name == "theirs" }) {
			t.Fatalf("%q", p.Headers)
		}
	})
}
