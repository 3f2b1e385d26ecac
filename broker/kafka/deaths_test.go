package kafka

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// deaths tells, for each file in testdata, what the letters of its records must say, one line for
// each. Frameworks wrote these records when they ran. The name of a file has the framework and its
// version, or says that the file was built from published formats.
var deaths = map[string][]string{
	"spring-kafka-3.3.10": {
		"spring-plain/0/0 at 1700000000000, 0 attempts, Spring$Bad: Listener method 'void " +
			"Spring$App.plain(org.apache.kafka.clients.consumer.ConsumerRecord<byte[], byte[]>)' threw exception; no such customer",
		"spring-plain/0/1 at 1700000000001, 0 attempts, Spring$Bad: Listener method 'void " +
			"Spring$App.plain(org.apache.kafka.clients.consumer.ConsumerRecord<byte[], byte[]>)' threw exception; no such customer",
		"spring-retried/0/0 at 1700000000000, 3 attempts, Spring$Bad: Listener failed; slow today",
		"spring-retried/0/1 at 1700000000001, 3 attempts, Spring$Bad: Listener failed; slow today",
	},
	"spring-kafka-3.3.10-causes": {
		"parcels/0/0 at 1700000000001, 3 attempts, java.lang.IllegalStateException: " + thrown("parcels", "byte[], byte[]") + "cannot ship",
		"parcels/0/1 at 1700000000002, 3 attempts, java.lang.IllegalArgumentException: " + thrown("parcels", "byte[], byte[]") +
			"weight must be positive",
		"parcels/0/2 at 1700000000003, 3 attempts, java.lang.NullPointerException: " + thrown("parcels", "byte[], byte[]"),
		"payments/0/0 at 1700000000004, 0 attempts, org.springframework.kafka.support.serializer.DeserializationException: " +
			"failed to deserialize",
		"payments/0/1 at 1700000000005, 0 attempts, org.springframework.kafka.support.serializer.DeserializationException: " +
			"failed to deserialize",
		"payments/0/2 at 1700000000006, 0 attempts, java.lang.IllegalStateException: " +
			thrown("payments", "java.lang.Integer, Dead$Payment") + "no such customer",
	},
	"spring-kafka-3.3.10-retries": {
		"mails/0/0 at 1700000000007, 3 attempts, java.lang.RuntimeException: Listener failed; mail was not sent",
		"bills/0/0 at 1700000000008, 3 attempts, java.lang.IllegalStateException: Listener failed; cannot ship",
	},
	"kafka-streams-4.2.0": {
		"streams-in/0/2 at 1795332038906, 0 attempts, org.apache.kafka.common.errors.SerializationException: Size of data " +
			"received by LongDeserializer is not 8",
		"streams-in2/0/1 at 1795331900707, 0 attempts, java.lang.IllegalStateException: no such customer",
	},
	"kafka-connect-4.1.1": {
		"connect-in/0/1 at 1700000000001, 0 attempts, org.apache.kafka.connect.errors.DataException: Converting byte[] to " +
			"Kafka Connect data failed due to serialization error: ",
		"connect-in/0/2 at 1700000000002, 0 attempts, org.apache.kafka.connect.errors.DataException: Value (many) was out of " +
			"range for requested data type",
		"connect-in/0/3 at 1700000000003, 0 attempts, java.lang.IllegalStateException: no such customer",
		"connect-in/0/4 at 1700000000004, 0 attempts, java.lang.IllegalStateException: no such customer",
	},
	"share-groups-built": {
		"share-in/0/0 at 1700000000000, 3 attempts, : delivery count limit reached",
		"share-in/0/1 at 1700000000001, 5 attempts, : delivery count limit reached",
	},
	"watermill-1.5.1-panics": {
		"invoices/-1/-1 at 1795381116551, 0 attempts, : panic: invalid memory address or nil pointer dereference",
		"invoices/-1/-1 at 1795381116556, 0 attempts, : panic: runtime.boundsError{x:6, y:0, signed:false, code:0x0}",
		"invoices/-1/-1 at 1795381116658, 0 attempts, : panic: &fmt.wrapError{msg:\"ledger eu-1: closed\", " +
			"err:(*errors.errorString)(0x3d72bd283080)}",
		"invoices/-1/-1 at 1795381116762, 0 attempts, : charge fourth: no such account",
	},
	"watermill-1.5.1": {"watermill-in/-1/-1 at 1795331840932, 0 attempts, : no such account"},
}

// thrown begins the text of an error of a Spring listener.
func thrown(method, types string) string {
	return "Listener method 'void Dead$App." + method + "(org.apache.kafka.clients.consumer.ConsumerRecord<" + types +
		">)' threw exception; "
}

// sent lists the headers of the senders in these files.
var sent = []string{"user", "tier", "shop", "ledger", "__Key_TypeId__", "_watermill_message_uuid"}

// death is a record in such a file, with bytes in base64.
type death struct {
	Topic      string
	Timestamp  int64
	Key, Value []byte
	Headers    []broker.RecordHeader
}

func deathsIn(t *testing.T, name string) (all []death) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var d death
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// Records that frameworks put on their topics are adopted with all that they tell, and a redrive
// sends them back as their sender made them.
func TestRecordsOfFrameworksAreRedriven(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		for name, want := range deaths {
			t.Run(name, func(t *testing.T) {
				b := make(t)
				all := deathsIn(t, name)
				b.putDeaths(t, all)
				st := memory.New(memory.Options{})
				if got := b.adopt(t, st); !slices.Equal(got, want) {
					t.Errorf("letters say\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				b.sendHome(t, st, all)
			})
		}
	})
}

// putDeaths adds records to the topic of letters, in order, and creates the topics that they came
// from.
func (b *fixture) putDeaths(t *testing.T, all []death) {
	t.Helper()
	for _, d := range all {
		r := &kgo.Record{Topic: b.letters, Partition: 0, Key: d.Key, Value: d.Value, Timestamp: time.UnixMilli(d.Timestamp)}
		for _, h := range d.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		by, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		if err := by.ProduceSync(limited(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		by.Close()
		death, _ := broker.ReadDeath(d.Headers)
		if _, err := kadm.NewClient(b.client).CreateTopic(limited(t), 1, 1, nil, death.Channel); err != nil &&
			!errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
	}
}

// adopt adopts the records and returns what the letters say.
func (b *fixture) adopt(t *testing.T, st *memory.Store) (said []string) {
	t.Helper()
	from := b.reader(t, b.letters, "adopt")
	defer from.Close()
	records, err := from.Next(limited(t), 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		l := broker.Adopted("kafka", &records[i], "")
		if _, errs := st.Adopt(t.Context(), []nixie.Letter{l}, "ann", "r"); errs[0] != nil {
			t.Fatal(errs[0])
		}
		o, f := l.Message.Origin, &l.History[0]
		if !l.LastFailedAt.Equal(records[i].Timestamp) {
			t.Errorf("it failed at %s", l.LastFailedAt)
		}
		said = append(said, fmt.Sprintf("%s/%d/%d at %d, %d attempts, %s: %s", o.Channel, o.Partition, o.Offset, o.Timestamp.UnixMilli(),
			l.Message.Attempts, f.Type, f.Text))
	}
	return said
}

// sendHome redrives all letters, and compares what arrives with the original records.
func (b *fixture) sendHome(t *testing.T, st *memory.Store, all []death) {
	t.Helper()
	b.sendLetters(t, st, len(all))
	for _, d := range all {
		death, _ := broker.ReadDeath(d.Headers)
		if !slices.ContainsFunc(b.Records(t, death.Channel), func(r broker.Record) bool { return d.matches(&r) }) {
			t.Errorf("%s/%d/%d is not on its topic as it was", death.Channel, death.Partition, death.Offset)
		}
	}
}

// sendLetters redrives the n letters of an office.
func (b *fixture) sendLetters(t *testing.T, st *memory.Store, n int) {
	t.Helper()
	to, err := Connect(b.at(""))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	send, err := redrive.Destination{To: to}.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "r"}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Run(limited(t), op.ID); err != nil || r.Done != int64(n) {
		t.Fatalf("%+v, %v", r.Operation, err)
	}
}

// matches reports whether a record equals the dead one, with our headers as the only trace of its
// death.
func (d *death) matches(r *broker.Record) bool {
	var theirs []broker.RecordHeader
	for _, h := range r.Headers {
		if !broker.Ours(h.Name) {
			theirs = append(theirs, h)
		}
	}
	var sender []broker.RecordHeader
	for _, h := range d.Headers {
		if slices.Contains(sent, h.Name) {
			sender = append(sender, h)
		}
	}
	return bytes.Equal(r.Key, d.Key) && (r.Key == nil) == (d.Key == nil) && bytes.Equal(r.Value, d.Value) &&
		(r.Value == nil) == (d.Value == nil) &&
		slices.EqualFunc(theirs, sender, func(a, b broker.RecordHeader) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}
