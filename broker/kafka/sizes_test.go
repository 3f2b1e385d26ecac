package kafka

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// incompressible returns bytes that no codec makes fewer.
func incompressible(seed byte, n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(out) // it never fails
	return out
}

// limitedTopic makes a topic that takes batches of a few bytes.
func (b *fixture) limitedTopic(t testing.TB, name, bytes string) {
	t.Helper()
	b.create(t, 3, map[string]*string{"max.message.bytes": &bytes}, name)
}

// connect makes a publisher that the end of the test closes.
func (b *fixture) connect(t testing.TB) *Publisher {
	t.Helper()
	p, err := Connect(b.at(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// A record that fits its topic only compressed dies like others and is redriven, also one that only
// zstd makes small enough.
func TestLargeRecordThatWasCompressed(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		in := b.source + ".in"
		b.limitedTopic(t, in, "100000")
		b.limitedTopic(t, in+".dlq", "110000")
		writer, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ProducerBatchMaxBytes(16<<20),
			kgo.ProducerBatchCompression(kgo.ZstdCompression().WithLevel(4)))
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		sent := map[string][]byte{"plain": bytes.Repeat([]byte("v"), 3_000_000), "far": bytes.Repeat(incompressible(1, 40_000), 7)}
		for key, value := range sent {
			if err := writer.ProduceSync(limited(t), &kgo.Record{Topic: in, Key: []byte(key), Value: value}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		b.source, b.letters = in, in+".dlq"
		h := b.start(t, func(context.Context, *nixie.Delivery) error { return errBad }, nil)
		got := b.lettersOf(t, 2)
		h.leave(t)
		moved, err := b.move(t, in+"-g", nil)
		if err != nil || moved.Redriven != 2 {
			t.Errorf("%+v, %v", moved, err)
		}
		for _, r := range slices.Concat(got, b.Records(t, in)) {
			if !bytes.Equal(r.Value, sent[string(r.Key)]) {
				t.Errorf("%s/%s has %d bytes", r.Channel, r.Key, len(r.Value))
			}
		}
		if n := len(b.Records(t, in)); n != 4 {
			t.Errorf("%d records", n)
		}
	})
}

// A large record stays where it was between others.
func TestLargeRecordKeepsItsPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		p := b.connect(t)
		var list []broker.Publication
		for i := range 60 {
			r := broker.Publication{Channel: b.source, Key: []byte("one"), Value: fmt.Append(nil, i)}
			if i%7 == 3 {
				r.Value = append(r.Value, bytes.Repeat([]byte(" "), 2_000_000)...)
			}
			list = append(list, r)
		}
		for _, err := range p.Publish(limited(t), list)() {
			if err != nil {
				t.Error(err)
			}
		}
		for i, r := range b.Records(t, b.source) {
			if strings.TrimSpace(string(r.Value)) != fmt.Sprint(i) {
				t.Errorf("record %d is %.10q", i, r.Value)
			}
		}
	})
}

// One record that is too large, or wrong for its topic, does not fail those of its batch.
func TestRefusedBatchGoesRecordByRecord(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		small, compacted, compact := b.source+".small", b.source+".compacted", "compact"
		b.limitedTopic(t, small, "3000")
		b.create(t, 1, map[string]*string{"cleanup.policy": &compact}, compacted)
		b.refuseBadRecords(t, compacted)
		p := b.connect(t)
		for topic, value := range map[string]func(i int) []byte{
			small:     func(i int) []byte { return incompressible(byte(i), 900) },
			compacted: func(i int) []byte { return fmt.Append(nil, "fine ", i) },
		} {
			var list []broker.Publication
			for i := range 30 {
				list = append(list, broker.Publication{Channel: topic, Key: []byte("one"), Value: value(i)})
			}
			bad, want := &list[20], nixie.CodeInvalid
			if bad.Key, bad.Value = nil, []byte("bad"); topic == small {
				bad.Value, want = incompressible(20, 9_000), nixie.CodeLimit
			}
			for i, err := range p.Publish(limited(t), list)() {
				if i == 20 && nixie.CodeOf(err) != want || i != 20 && err != nil {
					t.Errorf("record %d of %s: %v", i, topic, err)
				}
			}
		}
		for _, topic := range []string{small, compacted} {
			there := slices.Compact(valuesOf(b.Records(t, topic)))
			if len(there) != 29 {
				t.Errorf("%s has %d of 29: %.40q", topic, len(there), there)
			}
		}
	})
}

// refuseBadRecords makes a cluster in this process refuse batches with a record without a key, as a
// real one does on a compacted topic.
func (b *fixture) refuseBadRecords(t testing.TB, topic string) {
	t.Helper()
	if b.cluster == nil {
		return
	}
	topics, err := kadm.NewClient(b.client).ListTopics(limited(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	b.cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		answer := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, sent := range r.(*kmsg.ProduceRequest).Topics {
			of := sent.Topic == topic || kadm.TopicID(sent.TopicID) == topics[topic].ID
			if !of || !bytes.Contains(sent.Partitions[0].Records, []byte("bad")) {
				return nil, nil, false
			}
			refused, part := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
			refused.Topic, refused.TopicID, part.ErrorCode = sent.Topic, sent.TopicID, kerr.InvalidRecord.Code
			refused.Partitions = append(refused.Partitions, part)
			answer.Topics = append(answer.Topics, refused)
		}
		return answer, nil, true
	})
}
