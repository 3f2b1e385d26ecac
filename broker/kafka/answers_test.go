package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
)

// faultyWire is a wire that disturbs the records which a client sends.
type faultyWire struct {
	wire
	hits    atomic.Int64  // disturbed requests or answers
	release chan struct{} // closed to let the held answers pass
}

// newFaultyWire makes a wire that disturbs the first few requests with records. It breaks the
// connection before the request or before the answer, or holds answers until release is closed.
func newFaultyWire(of string, few int64) *faultyWire {
	b := &faultyWire{release: make(chan struct{})}
	strike := func(e *exchange) bool {
		if e.Key() != int16(kmsg.Produce) {
			return true
		}
		n := b.hits.Add(1)
		if of == noAnswer {
			<-b.release
			return true
		}
		return n > few
	}
	if of == requestLost {
		b.asked = strike
	} else {
		b.answered = strike
	}
	return b
}

// quick makes a client look for the broker soon after a broken connection.
var quick = kgo.MetadataMinAge(50 * time.Millisecond)

const (
	requestLost = "the request is lost"
	answerLost  = "the answer is lost"
	noAnswer    = "no answer comes for long"
)

// A letter that the broker confirms late, or after a broken connection, is there once. The group
// commits nothing before, and other records go on.
func TestLettersOverAFaultyConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		for _, of := range []string{requestLost, answerLost, noAnswer} {
			t.Run(of, func(t *testing.T) {
				t.Parallel()
				b, w := make(t), newFaultyWire(of, 2)
				b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("bad"), Value: []byte("v")})
				for i := range 5 {
					b.Produce(t, broker.Publication{Channel: b.source, Key: fmt.Append(nil, i), Value: []byte("v")})
				}
				l := newLedger(b)
				h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
					if d.Key == "bad" {
						return errBad
					}
					l.note(d)
					return nil
				}, func(c *Config, _ *broker.Config, _ *policy.Config) { c.Client = append(c.Client, w.through(), quick) })
				l.until(t, 5)
				waitUntil(t, func() bool { return w.hits.Load() >= 1 })
				if of == noAnswer {
					l.check(t) // the bad record is not among those that were handled
					close(w.release)
				}
				letters := b.lettersOf(t, 1)
				h.leave(t)
				total := int64(0)
				for part := range int32(3) {
					offset, _ := b.groupState(t, part)
					total += max(offset, 0)
				}
				if len(letters) != 1 || total != 6 || w.hits.Load() < 1 {
					t.Errorf("%d letters, %d of 6 committed, it happened %d times", len(letters), total, w.hits.Load())
				}
			})
		}
	})
}

// moveOver redrives the letters of a fixture over a wire.
func (b *fixture) moveOver(t testing.TB, w *wire, name string, m redrive.Mover) (redrive.Moved, error) {
	t.Helper()
	from := b.reader(t, b.letters, name)
	defer from.Close()
	to, err := newPublisher(b.seeds, []kgo.Opt{w.through(), quick})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	m.From, m.Destination.To = from, to
	return m.Run(limited(t))
}

// leftOf counts the letters that a reader of a name has not marked as done.
func (b *fixture) leftOf(t testing.TB, name string) int64 {
	t.Helper()
	r := b.reader(t, b.letters, name)
	defer r.Close()
	left := int64(0)
	for {
		got, err := r.Next(limited(t), 1_000)
		if err != nil {
			t.Fatal(err)
		}
		if left += int64(len(got)); len(got) == 0 {
			return left
		}
	}
}

// A redrive over a faulty connection sends each letter once, and remembers none that is not
// confirmed.
func TestRedriveOverAFaultyConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		for _, of := range []string{requestLost, answerLost, noAnswer} {
			t.Run(of, func(t *testing.T) {
				t.Parallel()
				b, w := make(t), newFaultyWire(of, 2)
				b.dead(t, 25)
				name := b.source + "-wire"
				var got redrive.Moved
				var err error
				var over sync.WaitGroup
				over.Go(func() { got, err = b.moveOver(t, &w.wire, name, redrive.Mover{Batch: 10}) })
				if of == noAnswer {
					waitUntil(t, func() bool { return w.hits.Load() >= 1 })
					if left := b.leftOf(t, name); left != 25 {
						t.Errorf("%d are remembered, and none is confirmed", 25-left)
					}
					close(w.release)
				}
				over.Wait()
				if err != nil || got.Redriven != 25 {
					t.Errorf("%+v, %v", got, err)
				}
				if there := valuesOf(b.Records(t, b.source)); len(there) != 25 || len(slices.Compact(there)) != 25 {
					t.Errorf("%d records are there, %d different ones", len(there), len(slices.Compact(there)))
				}
				if left := b.leftOf(t, name); left != 0 {
					t.Errorf("%d are not remembered", left)
				}
			})
		}
	})
}

// A redrive that ends without answers may leave records on the topic. The next redrive sends those
// again with the same IDs, and none that was confirmed.
func TestRedriveWithoutAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.dead(t, 25)
		name := b.source + "-never"
		if got, err := b.move(t, name, func(m *redrive.Mover) { m.Max = 10 }); err != nil || got.Redriven != 10 {
			t.Fatalf("%+v, %v", got, err)
		}
		w := newFaultyWire(noAnswer, 0)
		defer close(w.release)
		to, err := newPublisher(b.seeds, []kgo.Opt{w.through()})
		if err != nil {
			t.Fatal(err)
		}
		from := b.reader(t, b.letters, name)
		defer from.Close()
		var stopped error
		var got redrive.Moved
		var over sync.WaitGroup
		over.Go(func() {
			got, stopped = redrive.Mover{From: from, Destination: redrive.Destination{To: to}, Batch: 8}.Run(limited(t))
		})
		waitUntil(t, func() bool { return w.hits.Load() >= 1 })
		to.Close()
		over.Wait()
		if stopped == nil || got.Redriven != 0 {
			t.Errorf("%+v, %v", got, stopped)
		}
		if got, err := b.move(t, name, nil); err != nil || got.Redriven != 15 {
			t.Fatalf("%+v, %v", got, err)
		}
		b.sameIDs(t, 25, 8)
	})
}

// sameIDs checks that n distinct records were redriven, at most most of them again, and those with
// the same ID.
func (b *fixture) sameIDs(t testing.TB, n, most int) (again int) {
	t.Helper()
	ids := map[string]string{}
	for _, r := range b.Records(t, b.source) {
		id := header(&r, broker.HeaderRedriveID)
		switch before, there := ids[string(r.Value)]; {
		case id == "":
			t.Errorf("%s has no redrive ID", r.Value)
		case there:
			if again++; before != id {
				t.Errorf("%s has the redrive IDs %s and %s", r.Value, before, id)
			}
		}
		ids[string(r.Value)] = id
	}
	if len(ids) != n || again > most {
		t.Errorf("%d of %d records, %d of them again", len(ids), n, again)
	}
	return again
}
