package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

var errBad = nixie.Permanent(errors.New("no good"))

// lettersOf waits until there are n letters and returns them.
func (b *fixture) lettersOf(t testing.TB, n int) []broker.Record {
	t.Helper()
	ctx := limited(t)
	for ctx.Err() == nil {
		if got := b.Records(t, b.letters); len(got) >= n {
			return got
		}
		sleep(ctx, 5*time.Millisecond)
	}
	t.Fatalf("no %d letters", n)
	return nil
}

// S13: the group commits nothing while the topic of letters does not exist. When the operator has
// created it, the letters go there.
func TestS13_MissingTopicOfLetters(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.fill(t, 3)
		var tried atomic.Int64
		later := b.source + ".later"
		h := b.start(t, func(context.Context, *nixie.Delivery) error { tried.Add(1); return errBad },
			func(_ *Config, c *broker.Config, _ *policy.Config) { c.Letters = "{source}.later" })
		waitUntil(t, func() bool { return tried.Load() >= 1 })
		for part := range int32(3) {
			if offset, _ := b.groupState(t, part); offset > 0 {
				t.Errorf("partition %d: %d is committed, and there is no letter", part, offset)
			}
		}
		b.create(t, 1, nil, later)
		waitUntil(t, func() bool { return len(b.Records(t, later)) >= 3 })
		h.leave(t)
		total := int64(0)
		for part := range int32(3) {
			offset, _ := b.groupState(t, part)
			total += max(offset, 0)
		}
		if n := len(b.Records(t, later)); n != 3 || total != 3 {
			t.Errorf("%d letters, %d committed", n, total)
		}
	})
}

// S13: a letter whose acknowledgement is lost may have been written or not. The group commits
// nothing before a letter is confirmed.
func TestS13_LetterWithoutAnswer(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.fill(t, 1)
	var lost atomic.Int64
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if lost.Add(1) <= 1 {
			return nil, errors.New("the connection broke"), true
		}
		return nil, nil, false
	})
	h := b.start(t, func(context.Context, *nixie.Delivery) error { return errBad }, nil)
	letters := b.lettersOf(t, 1)
	h.leave(t)
	if offset, _ := b.groupState(t, letters[0].Partition); lost.Load() < 2 || len(letters) != 1 || offset != 1 {
		t.Errorf("%d requests, %d letters, %d committed", lost.Load(), len(letters), offset)
	}
}

// A letter that is too large for its topic ends the worker, with the name of the record and of the
// setting. The group commits nothing for it, and others are done.
func TestLetterThatDoesNotFit(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.limitedTopic(t, b.source+".small", "3000")
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("one"), Value: incompressible(1, 8_000)})
		b.fill(t, 5)
		var fine atomic.Int64
		h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
			if len(d.Body) > 1 {
				return errBad
			}
			fine.Add(1)
			return nil
		}, func(_ *Config, c *broker.Config, _ *policy.Config) {
			c.Letters, c.Order = "{source}.small", broker.ProcessUnordered
		})
		ctx := limited(t)
		s, err := broker.New(broker.Config{Driver: h.driver, Letters: "{source}.small"})
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Check(ctx, []string{b.source})
		if err != nil || len(found) == 0 || found[0].Name != "target-too-small" {
			t.Errorf("the check says %+v, %v", found, err)
		}
		waitUntil(t, func() bool { return fine.Load() >= 5 })
		select {
		case err := <-h.ran:
			said := b.source + ".small takes no record so large: raise its max.message.bytes"
			if !errors.Is(err, nixie.ErrHeldUp) || !strings.Contains(err.Error(), said) {
				t.Errorf("the worker ended with %v", err)
			}
		case <-ctx.Done():
			t.Error("the worker goes on")
		}
		if err := h.driver.Close(ctx); err != nil {
			t.Error(err)
		}
		total := int64(0)
		for part := range int32(3) {
			offset, _ := b.groupState(t, part)
			total += max(offset, 0)
		}
		if total >= 6 {
			t.Errorf("%d of 6 are committed", total)
		}
	})
}

// Check refuses, by name, channels that a source must not start with.
func TestCheck(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		policy := "compact"
		b.create(t, 1, map[string]*string{"cleanup.policy": &policy}, b.source+".compacted")
		d, _ := b.open(t, nil)
		defer closed(t, d)
		for _, c := range []struct{ letters, source, want string }{
			{"{source}.nowhere", b.source, "missing-target"},
			{b.source, b.source, "cycle"},
			{"{source}.compacted", b.source, "compacted-target"},
			{"{source}.dlq", b.source + ".nowhere", "missing-source"},
		} {
			s, err := broker.New(broker.Config{Driver: d, Letters: c.letters})
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.Check(limited(t), []string{c.source})
			if err != nil {
				t.Fatal(err)
			}
			if err := broker.FirstRefused(found); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("letters %s of %s: %v, %+v", c.letters, c.source, err, found)
			}
		}
		s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Check(limited(t), []string{b.source})
		if err != nil || broker.FirstRefused(found) != nil {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// Odd records die like others, on the topic of letters and in the office, with all that they had.
func TestOddRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		many := &kgo.Record{Topic: b.source, Key: []byte("many headers"), Value: []byte("v")}
		for i := range 3_000 {
			many.Headers = append(many.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", i), Value: []byte{byte(i)}})
		}
		large := &kgo.Record{Topic: b.source, Key: []byte("large"), Value: bytes.Repeat([]byte{0xff}, 900_000)}
		old := &kgo.Record{Topic: b.source, Key: []byte("no time"), Value: nil, Timestamp: time.UnixMilli(-1)}
		if err := b.client.ProduceSync(limited(t), many, large, old).FirstErr(); err != nil {
			t.Fatal(err)
		}
		st := memory.New(memory.Options{})
		h := b.start(t, func(context.Context, *nixie.Delivery) error { return errBad },
			func(_ *Config, c *broker.Config, _ *policy.Config) { c.Office, c.Queue = st, "odd" })
		got := b.lettersOf(t, 3)
		h.leave(t)
		for _, l := range got {
			for _, want := range []*kgo.Record{many, large, old} {
				if bytes.Equal(l.Key, want.Key) &&
					(!bytes.Equal(l.Value, want.Value) || (l.Value == nil) != (want.Value == nil) || len(l.Headers) < len(want.Headers)) {
					t.Errorf("%s: %d bytes, %d headers", l.Key, len(l.Value), len(l.Headers))
				}
			}
		}
		letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{})
		if err != nil || len(letters) != 3 {
			t.Errorf("%d in the office, %v", len(letters), err)
		}
	})
}

// A topic of letters with too few replicas refuses records, and the client tries for a long time.
// Other records go on, and nothing of the letters is committed.
func TestTopicOfLettersRefusesRecords(t *testing.T) {
	t.Parallel()
	b := fake(t)
	topics, err := kadm.NewClient(b.client).ListTopics(t.Context(), b.source)
	if err != nil {
		t.Fatal(err)
	}
	b.cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		answer := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			if topic.Topic == b.source || kadm.TopicID(topic.TopicID) == topics[b.source].ID {
				return nil, nil, false
			}
			refused := kmsg.NewProduceResponseTopic()
			refused.Topic, refused.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				refused.Partitions = append(refused.Partitions, part)
			}
			answer.Topics = append(answer.Topics, refused)
		}
		return answer, nil, true
	})
	const n = 3
	for i := range n {
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("bad"), Value: []byte{byte(i)}})
	}
	var bad, fine atomic.Int64
	h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
		if d.Key == "bad" {
			bad.Add(1)
			return errBad
		}
		fine.Add(1)
		return nil
	}, func(c *Config, s *broker.Config, _ *policy.Config) {
		s.Order, c.Client = broker.ProcessUnordered, append(c.Client, kgo.RecordDeliveryTimeout(time.Hour))
	})
	ctx := limited(t)
	waitUntil(t, func() bool { return bad.Load() >= n })
	for round := range int64(2) { // the second round begins when records of the first were settled while letters were refused
		b.fill(t, n)
		waitUntil(t, func() bool { return fine.Load() >= n*(round+1) })
		waitUntil(t, func() bool { return h.worker.InHand() <= n })
	}
	if ctx.Err() != nil {
		t.Errorf("%d of %d others were done, %d are in hand", fine.Load(), 2*n, h.worker.InHand())
	}
	h.stop()
	h.worker.Abort()
	h.end()
	<-h.ran //nolint:errcheck // what it says does not matter
	if got := len(b.Records(t, b.letters)); got > 0 {
		t.Errorf("%d letters", got)
	}
}

// A record with far more headers than an office takes becomes a letter: on its topic with all of
// them, in the office with those that fit. Its partition goes on.
func TestManyHeaders(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) { manyHeaders(t, make(t)) })
}

func manyHeaders(t *testing.T, b *fixture) {
	many := &kgo.Record{Topic: b.source, Key: []byte("one"), Value: []byte("v")}
	for range 100_000 {
		many.Headers = append(many.Headers, kgo.RecordHeader{Key: "h", Value: []byte{1}})
	}
	if err := b.client.ProduceSync(limited(t), many).FirstErr(); err != nil {
		t.Fatal(err)
	}
	b.fill(t, 3)
	b.addStage(t, 10*time.Millisecond)
	var fine atomic.Int64
	st := memory.New(memory.Options{})
	h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
		if len(d.Headers) == 100_000 {
			return errors.New("too many")
		}
		fine.Add(1)
		return nil
	}, func(c *Config, s *broker.Config, p *policy.Config) {
		p.MaxAttempts, s.Office = 2, st
		waitsFor(10*time.Millisecond)(c, s, p)
	})
	got := b.lettersOf(t, 1)
	waitUntil(t, func() bool { return fine.Load() >= 3 })
	h.leave(t)
	if n := len(got[0].Headers); n < 100_000 || header(&got[0], broker.HeaderAttempts) != "2" {
		t.Errorf("%d headers, %s attempts", n, header(&got[0], broker.HeaderAttempts))
	}
	if offset, _ := b.groupState(t, got[0].Partition); offset != 4 {
		t.Errorf("%d are committed", offset)
	}
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(letters) != 1 || !slices.ContainsFunc(letters[0].Message.Headers,
		func(h nixie.Header) bool { return h.Name == broker.HeaderLeftOut }) {
		t.Errorf("%d in the office, %v", len(letters), err)
	}
}
