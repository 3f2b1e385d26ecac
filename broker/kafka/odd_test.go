package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// die lets n records die, and returns their letters on the topic and in an office. It checks that
// all records are committed.
func (b *fixture) die(t testing.TB, n int, handler nixie.Handler, change func(*Config, *broker.Config, *policy.Config)) ([]broker.Record,
	*memory.Store) {
	t.Helper()
	st := memory.New(memory.Options{})
	h := b.start(t, handler.Handle, func(c *Config, s *broker.Config, p *policy.Config) {
		if s.Office = st; change != nil {
			change(c, s, p)
		}
	})
	letters := b.lettersOf(t, n)
	h.leave(t)
	total := int64(0)
	for part := range int32(3) {
		offset, _ := b.groupState(t, part)
		total += max(offset, 0)
	}
	if there := len(b.Records(t, b.source)); len(letters) != n || total != int64(there) {
		t.Errorf("%d letters of %d, %d of %d records are committed", len(letters), n, total, there)
	}
	return letters, st
}

// inOffice returns the letters of an office, with their bodies.
func inOffice(t testing.TB, st *memory.Store) []nixie.Letter {
	t.Helper()
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

var refuses = nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return errBad })

// A body that a typed handler cannot decode does not reach it, and is not tried again. Its letter
// has class and reason, and the original bytes.
func TestUndecodable(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		type order struct{ ID int }
		typed := nixie.NewType[order]("order").Handle(func(_ context.Context, j *nixie.Job[order]) error {
			if j.Body.ID != 7 {
				t.Errorf("%q was decoded", j.Delivery.Body)
			}
			return nil
		})
		bodies := [][]byte{[]byte(`{"ID":`), {0xff, 0, 0xfe}, []byte(`"seven"`), {}, nil, []byte(`{"ID":7}`)}
		for i, body := range bodies {
			b.Produce(t, broker.Publication{Channel: b.source, Key: []byte{byte(i)}, Value: body})
		}
		letters, st := b.die(t, 5, typed.Handler, nil)
		for _, l := range letters {
			want := bodies[l.Key[0]]
			if !bytes.Equal(l.Value, want) || (l.Value == nil) != (want == nil) {
				t.Errorf("%q became %q", want, l.Value)
			}
			said := fmt.Sprint(header(&l, broker.HeaderFailureReason), header(&l, broker.HeaderReason),
				header(&l, broker.HeaderFailureClass), header(&l, broker.HeaderAttempts))
			if said != fmt.Sprint("permanent_error", nixie.ReasonSerialization, nixie.ClassPermanent, 1) {
				t.Errorf("the letter of %q says %s", want, said)
			}
		}
		for _, l := range inOffice(t, st) {
			if l.Class != nixie.ClassPermanent || l.Reason != nixie.ReasonSerialization || l.Message.Attempts != 1 {
				t.Errorf("in the office: %s, %s, %d attempts", l.Class, l.Reason, l.Message.Attempts)
			}
		}
	})
}

// A tombstone dies and is redriven as one, from the topic and from the office. An empty value would
// not delete what it should delete.
func TestTombstones(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("gone"), Value: nil},
			broker.Publication{Channel: b.source, Key: []byte("empty"), Value: []byte{}})
		letters, st := b.die(t, 2, refuses, nil)
		right := func(records []broker.Record, n int) {
			t.Helper()
			for _, r := range records {
				if (r.Value == nil) != (string(r.Key) == "gone") || len(r.Value) > 0 {
					t.Errorf("%s is %#v", r.Key, r.Value)
				}
			}
			if len(records) != n {
				t.Errorf("%d records of %d", len(records), n)
			}
		}
		right(letters, 2)
		if got, err := b.move(t, b.source+"-home", nil); err != nil || got.Redriven != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		right(b.Records(t, b.source), 4)
		b.sendLetters(t, st, 2)
		right(b.Records(t, b.source), 6)
	})
}

// Times before 1970, of records and in headers, and −1, which is no time, do no harm.
func TestNegativeTimestamps(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		times := []int64{-1, -1, -2, -1_700_000_000_000, -1 << 62}
		for i, ms := range times {
			r := &kgo.Record{Topic: b.source, Key: []byte{byte(i)}, Value: []byte("v"), Timestamp: time.UnixMilli(ms)}
			if i > 0 {
				for _, name := range []string{broker.HeaderTimestamp, broker.HeaderFirstFailureAt, broker.HeaderLastFailureAt,
					broker.HeaderDue, broker.HeaderRedrivenAt} {
					r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: fmt.Append(nil, ms)})
				}
			}
			if err := b.client.ProduceSync(limited(t), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		letters, st := b.die(t, len(times), refuses, nil)
		for _, l := range letters {
			if at := header(&l, broker.HeaderFirstFailureAt); at == "" || at[0] == '-' {
				t.Errorf("it failed first at %q", at)
			}
		}
		for _, l := range inOffice(t, st) {
			if err := check.Letter(&l); err != nil {
				t.Error(err)
			}
		}
		if got, err := b.move(t, "", nil); err != nil || got.Redriven != int64(len(times)) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A record as large as its topic takes also fits on its stage and its topic of letters, if Create
// made these. With our headers it is too large for its own topic, and a redrive leaves it.
func TestMaximumSize(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		most := 200_000
		name, text := b.source+".max", fmt.Sprint(most)
		b.create(t, 1, map[string]*string{"max.message.bytes": &text}, name)
		b.source, b.letters = name, name+".dlq"
		value := noise(most)
		for {
			err := b.client.ProduceSync(limited(t), &kgo.Record{Topic: name, Key: []byte("k"), Value: value}).FirstErr()
			if err == nil {
				break
			}
			if !errors.Is(err, kerr.MessageTooLarge) {
				t.Fatal(err)
			}
			value = value[1:]
		}
		t.Logf("%d bytes are the most", len(value))
		b.addStage(t, 10*time.Millisecond)
		if _, err := Create(limited(t), Config{Seeds: b.seeds}, name, b.letters); err != nil {
			t.Fatal(err)
		}
		letters, _ := b.die(t, 1, nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return errLater }),
			func(c *Config, s *broker.Config, p *policy.Config) {
				p.MaxAttempts = 2
				waitsFor(10*time.Millisecond)(c, s, p)
			})
		if n := len(b.Records(t, b.stages[0].Of(name))); n != 1 || !bytes.Equal(letters[0].Value, value) ||
			header(&letters[0], broker.HeaderAttempts) != "2" {
			t.Errorf("%d on the stage, %d of %d bytes in the letter", n, len(letters[0].Value), len(value))
		}
		got, err := b.move(t, b.source+"-max", nil)
		if err != nil || got.Redriven != 0 || got.Skipped != 1 || len(got.Refused) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// noise returns bytes that no compression makes smaller.
func noise(n int) []byte {
	rng := rand.NewChaCha8([32]byte{1})
	out := make([]byte, n)
	_, _ = rng.Read(out) // it never fails
	return out
}
