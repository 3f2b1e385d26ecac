package kafka

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// Tests named S13 to S18 each check a mistake of the sample programs of the dead letter channel
// pattern. S13, S16 and S17 are in other files.

// S14: a handler, or the wait for a retry, may take longer than the session, and the member stays
// in the group.
func TestS14_SlowHandlerStaysInTheGroup(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.fill(t, 2)
	const session = time.Second
	l := newLedger(b)
	h := b.start(t, func(ctx context.Context, d *nixie.Delivery) error {
		if d.Origin.Offset == 0 && d.Attempts == 1 {
			return errLater
		}
		if sleep(ctx, session*3/2); ctx.Err() != nil {
			return ctx.Err()
		}
		l.note(d)
		return nil
	}, func(c *Config, s *broker.Config, p *policy.Config) {
		c.Client = append(c.Client, kgo.SessionTimeout(session), kgo.HeartbeatInterval(session/10))
		waitsFor(session*3/2)(c, s, p)
	})
	l.until(t, 1)
	group := h.driver.group
	member, generation := group.GroupMetadata()
	l.until(t, 2)
	again, same := group.GroupMetadata()
	if h.driver.group != group || again != member || same != generation {
		t.Errorf("it was %s in generation %d, and is %s in %d", member, generation, again, same)
	}
	h.leave(t)
	if l.done[topicPartition{b.source, b.partOf(t)}][0] != 1 || l.count() != 2 {
		t.Errorf("handled: %v", l.done)
	}
}

// partOf returns the partition that has records.
func (b *fixture) partOf(t testing.TB) int32 {
	t.Helper()
	return b.Records(t, b.source)[0].Partition
}

// S15: a crash repeats only what was not finished, not all that was polled with it. A record that
// waits for its retry does not hold up other keys.
func TestS15_ACrashRepeatsTheUnfinished(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.fill(t, 10)
		d := b.Join(t).(*Driver)
		got := take(t, d, 10)
		all(t, d.Ack(t.Context(), got[:5]))
		ctx := limited(t)
		for offset := int64(0); offset < 5 && ctx.Err() == nil; offset, _ = b.groupState(t, got[0].Partition) {
			sleep(ctx, time.Millisecond)
		}
		b.Crash(t, d)
		next, _ := b.open(t, nil)
		for offset := int64(5); offset < 10; offset++ {
			r := take(t, next, 1)
			if r[0].Offset != offset {
				t.Errorf("it goes on at %d, want %d", r[0].Offset, offset)
			}
			all(t, next.Ack(t.Context(), r))
		}
		closed(t, next)
		b.fill(t, 1)
		for i := range 20 {
			b.Produce(t, broker.Publication{Channel: b.source, Key: []byte{byte(i)}, Value: []byte("v")})
		}
		l := newLedger(b)
		h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
			if d.Key == "one" {
				return errLater
			}
			l.note(d)
			return nil
		}, waitsFor(time.Hour))
		l.until(t, 20)
		h.stop()
		h.worker.Abort()
		<-h.ran //nolint:errcheck // the waiting record is not finished
		closed(t, h.driver)
	})
}

// S18: a letter names its error in words, not only by its class. A missing key stays different from
// an empty one.
func TestS18_NullAndEmptyKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		for _, key := range [][]byte{nil, {}, []byte("k")} {
			b.Produce(t, broker.Publication{Channel: b.source, Key: key, Value: []byte("v")})
		}
		h := b.start(t, func(context.Context, *nixie.Delivery) error {
			return nixie.WithReason(nixie.Permanent(errors.New("no such customer")), nixie.ReasonValidation)
		}, nil)
		letters := b.lettersOf(t, 3)
		h.leave(t)
		for _, r := range letters {
			keys := headersOf(&r, broker.HeaderKey)
			if (len(keys) == 1) != (r.Key != nil) || len(keys) == 1 && keys[0] != string(r.Key) {
				t.Errorf("key %#v, header %#v", r.Key, keys)
			}
			if header(&r, broker.HeaderExceptionText) != "no such customer" || header(&r, broker.HeaderReason) != "validation" ||
				header(&r, broker.HeaderFailureReason) != "permanent_error" {
				t.Errorf("%q", r.Headers)
			}
		}
		kinds := slices.ContainsFunc(letters, func(r broker.Record) bool { return r.Key == nil }) &&
			slices.ContainsFunc(letters, func(r broker.Record) bool { return r.Key != nil && len(r.Key) == 0 })
		if !kinds {
			t.Error("no key and an empty one are the same")
		}
	})
}

// A record larger than an office takes is a letter there with what fits, and whole on the topic of
// letters. Its partition goes on.
func TestRecordLargerThanAnOffice(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		most := "33554432"
		name := b.source + ".large"
		b.create(t, 1, map[string]*string{"max.message.bytes": &most}, name, name+".dlq")
		b.source, b.letters = name, name+".dlq"
		by, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ProducerBatchMaxBytes(32<<20),
			kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err != nil {
			t.Fatal(err)
		}
		defer by.Close()
		large := bytes.Repeat([]byte{0xfe}, nixie.MaxBody+100)
		if err := by.ProduceSync(limited(t), &kgo.Record{Topic: name, Key: []byte("large"), Value: large}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		b.fill(t, 3)
		st, l := memory.New(memory.Options{}), newLedger(b)
		h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
			if d.Key == "large" {
				return errBad
			}
			l.note(d)
			return nil
		}, func(_ *Config, c *broker.Config, _ *policy.Config) { c.Office, c.Order = st, broker.ProcessByPartition })
		source, err := broker.New(broker.Config{Driver: h.driver, Letters: broker.DefaultLetters, Office: st})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := source.Check(limited(t), []string{name}); err != nil { // the driver learns what the topics take
			t.Fatal(err)
		}
		l.until(t, 3)
		h.leave(t)
		if got := b.lettersOf(t, 1); !bytes.Equal(got[0].Value, large) {
			t.Errorf("%d of %d bytes are on the topic", len(got[0].Value), len(large))
		}
		letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
		if err != nil || len(letters) != 1 || len(letters[0].Message.Body) != nixie.MaxBody ||
			!slices.Contains(letters[0].Message.Headers, nixie.Header{Name: broker.HeaderBytesLeftOut, Value: "100"}) {
			t.Errorf("%d in the office, %v", len(letters), err)
		}
	})
}
