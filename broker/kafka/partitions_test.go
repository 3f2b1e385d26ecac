package kafka

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// diedOn adds a letter of a key that died on a partition. Its value is its name.
func (b *fixture) diedOn(t testing.TB, name, partition string) {
	t.Helper()
	r := &kgo.Record{Topic: b.letters, Key: []byte("one"), Value: []byte(name), Headers: []kgo.RecordHeader{
		{Key: broker.HeaderTopic, Value: []byte(b.source)}, {Key: broker.HeaderFailureReason, Value: []byte("permanent_error")}}}
	if partition != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: broker.HeaderPartition, Value: []byte(partition)})
	}
	if err := b.client.ProduceSync(limited(t), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// where returns the partition of each record of a topic by its value.
func (b *fixture) where(t testing.TB, topic string) map[string]int32 {
	t.Helper()
	there := map[string]int32{}
	for _, r := range b.Records(t, topic) {
		there[string(r.Value)] = r.Partition
	}
	return there
}

// A record goes back to the partition where it died, whichever its key would choose. If that is not
// known, or gone, or another topic or cluster is meant, or its key was changed, the key decides.
func TestRedriveToTheOriginalPartition(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		other := b.source + ".other"
		b.create(t, 3, nil, other)
		for _, at := range []string{"0", "1", "2", "7", "-1", ""} {
			b.diedOn(t, "of "+at, at)
		}
		for _, r := range []broker.Publication{{Channel: b.source, Key: []byte("one"), Value: []byte("key")},
			{Channel: b.source, Key: []byte("changed"), Value: []byte("changed key")}} {
			b.Produce(t, r)
		}
		key := b.where(t, b.source)
		none := map[string]int32{"of 0": key["key"], "of 1": key["key"], "of 2": key["key"]}
		for _, c := range []struct {
			name   string
			topic  string
			change func(*redrive.Mover)
			want   map[string]int32
		}{
			{"default", b.source, func(*redrive.Mover) {}, map[string]int32{"of 0": 0, "of 1": 1, "of 2": 2}},
			{"by key", b.source, func(m *redrive.Mover) { m.Destination.ByKey = true }, none},
			{"another topic", other, func(m *redrive.Mover) { m.Destination.Channel = other }, none},
			{"another cluster", b.source, func(m *redrive.Mover) { m.Destination.To = elsewhere{m.Destination.To} }, none},
			{"another key", b.source, func(m *redrive.Mover) {
				m.Destination.Transform = func(_ context.Context, r *broker.Returning) error { r.Key = []byte("changed"); return nil }
			}, map[string]int32{"of 0": key["changed key"], "of 1": key["changed key"], "of 2": key["changed key"]}},
		} {
			if moved, err := b.move(t, b.source+"-"+c.name, c.change); err != nil || moved.Redriven != 6 {
				t.Fatalf("%s: %+v, %v", c.name, moved, err)
			}
			got := map[string]int32{}
			for value, at := range b.latest(t, c.topic, 6) {
				if _, known := c.want[value]; known {
					got[value] = at
				} else if want := b.byKey(key, c.name); at != want {
					t.Errorf("%s: %q is on partition %d, its key on %d", c.name, value, at, want)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: partitions %v, want %v", c.name, got, c.want)
			}
		}
	})
}

// elsewhere is a publisher of another cluster.
type elsewhere struct{ broker.Publisher }

func (elsewhere) Server(context.Context) (string, error) { return "another", nil }

// byKey returns the partition of the key that a case leaves a record.
func (b *fixture) byKey(key map[string]int32, name string) int32 {
	if name == "another key" {
		return key["changed key"]
	}
	return key["key"]
}

// latest returns the partitions of the newest n records of a topic, of which each value is once.
func (b *fixture) latest(t testing.TB, topic string, n int) map[string]int32 {
	t.Helper()
	newest := map[string]broker.Record{}
	for _, r := range b.Records(t, topic) {
		redriven := !broker.OperationOf(r.Headers).IsZero()
		if before := newest[string(r.Value)]; redriven && operationOf(r) >= operationOf(before) {
			newest[string(r.Value)] = r
		}
	}
	out := map[string]int32{}
	for value, r := range newest {
		out[value] = r.Partition
	}
	if len(out) != n {
		t.Fatalf("%d of %d records on %s", len(out), n, topic)
	}
	return out
}

func operationOf(r broker.Record) string { return broker.OperationOf(r.Headers).String() }

// Letters of an office go back to their partitions too: those of this cluster, and those that do
// not tell theirs.
func TestLettersGoBackToTheirPartition(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		p, err := Connect(b.at(""))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		here, err := p.Server(limited(t))
		if err != nil || here == "" {
			t.Fatal(here, err)
		}
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("one"), Value: []byte("key")})
		key := b.where(t, b.source)["key"]
		at := (key + 1) % 3
		var letters []nixie.Letter
		for _, server := range []string{here, "", "another"} {
			from := nixie.Origin{System: "kafka", Server: server, Channel: b.source, Partition: at, Offset: 1, Key: []byte("one")}
			letters = append(letters, nixie.Letter{
				ID: nixie.ID{byte(len(letters) + 1)}, Message: nixie.Message{Body: []byte("of " + server), Origin: &from},
			})
		}
		send, err := redrive.Destination{To: p}.Letters()
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range send(limited(t), letters) {
			if err != nil {
				t.Error(err)
			}
		}
		got := b.where(t, b.source)
		if got["of "+here] != at || got["of "] != at || got["of another"] != key || len(got) != 4 {
			t.Errorf("partition %d, that of the key is %d: %v", at, key, got)
		}
	})
}
