package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// silentWire is a wire on which the broker confirms the first few requests to add records. It gets
// later ones too, but its answers do not arrive.
type silentWire struct {
	wire
	after int64
	came  atomic.Int64
	held  chan struct{} // closed at the first request without an answer
	once  sync.Once
	over  chan struct{} // ends the silence
}

func silentAfter(t testing.TB, answers int64) *silentWire {
	t.Helper()
	s := &silentWire{after: answers, held: make(chan struct{}), over: make(chan struct{})}
	t.Cleanup(func() { close(s.over) })
	s.answered = func(e *exchange) bool {
		if e.Key() == int16(kmsg.Produce) && s.came.Add(1) > s.after {
			s.once.Do(func() { close(s.held) })
			<-s.over
		}
		return true
	}
	return s
}

// publisher returns one whose answers come over the wire.
func (s *silentWire) publisher(t testing.TB, b *fixture) *Publisher {
	t.Helper()
	to, err := newPublisher(b.seeds, []kgo.Opt{s.through()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Close)
	return to
}

// soon bounds the wait of a route of these tests after it is stopped.
const soon = 200 * time.Millisecond

// interrupted returns a context that ends when the broker is silent.
func (s *silentWire) interrupted(t testing.TB) context.Context {
	t.Helper()
	ctx, stop := context.WithCancel(limited(t))
	t.Cleanup(stop)
	go func() {
		select {
		case <-s.held:
		case <-ctx.Done():
		}
		stop()
	}()
	return ctx
}

// A redrive that is stopped while the broker is silent ends, and tells how many records are
// uncertain. It remembers only confirmed ones; the next run sends the rest with the same IDs.
func TestStoppedRedriveOfASilentBroker(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.dead(t, 40)
		name, s := b.source+"-silent", silentAfter(t, 3)
		from := b.reader(t, b.letters, name)
		defer from.Close()
		got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: s.publisher(t, b), Patience: soon},
			Batch: 4}.Run(s.interrupted(t))
		if nixie.CodeOf(err) != nixie.CodeUnavailable || got.Redriven < 1 || got.Unanswered < 1 || got.Unanswered > 4 || got.Skipped > 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		if left := b.leftOf(t, name); left != 40-got.Redriven {
			t.Errorf("%d are left of 40, %d were confirmed", left, got.Redriven)
		}
		again, err := b.move(t, name, nil)
		if err != nil || again.Redriven != 40-got.Redriven || again.Unanswered != 0 {
			t.Errorf("%+v, %v", again, err)
		}
		if n := b.sameIDs(t, 40, int(got.Unanswered)); n < 1 {
			t.Error("nothing was there that had no answer: nothing was tested")
		}
	})
}

// The same for letters of an office: confirmed ones are resolved, and the operation goes on with
// the rest.
func TestStoppedRedriveOfAnOfficeToASilentBroker(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b, st := make(t), memory.New(memory.Options{})
		for i := range 40 {
			l := broker.Adopted("kafka", &broker.Record{
				Channel: b.letters, Offset: int64(i), ID: [16]byte{1, 15: byte(i)}, Key: fmt.Append(nil, i),
				Value: fmt.Append(nil, "value ", i), Timestamp: time.UnixMilli(1_700_000_000_000),
				Headers: []broker.RecordHeader{{Name: broker.HeaderTopic, Value: []byte(b.source)}},
			}, "")
			if _, errs := st.Adopt(t.Context(), []nixie.Letter{l}, "ann", "r"); errs[0] != nil {
				t.Fatal(errs[0])
			}
		}
		engine := func(to broker.Publisher) *redrive.Engine {
			send, err := redrive.Destination{To: to, Patience: soon}.Letters()
			if err != nil {
				t.Fatal(err)
			}
			e, err := redrive.New(redrive.Config{Store: st, Send: send, Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		s := silentAfter(t, 5)
		e := engine(s.publisher(t, b))
		op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"}, nixie.Filter{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(s.interrupted(t), op.ID)
		if nixie.CodeOf(err) != nixie.CodeUnavailable || r.Done < 1 || r.Unanswered < 1 || r.Unanswered > 2 || r.Pending != 40-r.Done {
			t.Fatalf("%+v, %d without an answer, %v", r.Operation, r.Unanswered, err)
		}
		resolved, _, err := st.Letters(t.Context(), nixie.Filter{Statuses: []nixie.Status{nixie.StatusResolved}}, store.Page{Limit: 100})
		if err != nil || int64(len(resolved)) != r.Done {
			t.Errorf("%d are resolved, %d were confirmed, %v", len(resolved), r.Done, err)
		}
		to, err := Connect(b.at(""))
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if again, err := engine(to).Run(limited(t), op.ID); err != nil || again.Done != 40 || again.Unanswered != 0 {
			t.Errorf("%+v, %v", again.Operation, err)
		}
		if n := b.sameIDs(t, 40, int(r.Unanswered)); n < 1 {
			t.Error("nothing was there that had no answer: nothing was tested")
		}
	})
}

// A letter without an answer of a silent broker is not stored. The worker and the member may leave,
// and the group commits nothing.
func TestCloseWhileALetterHasNoAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b, s := make(t), silentAfter(t, 0)
		b.fill(t, 1)
		d, _ := b.open(t, func(c *Config) { c.Client = append(c.Client, s.through()) })
		from, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
		if err != nil {
			t.Fatal(err)
		}
		got, err := from.Receive(limited(t), nixie.Want{Max: 1, Wait: time.Minute, Lease: time.Minute})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		failure := &nixie.Failure{Class: nixie.ClassPermanent, Reason: nixie.ReasonHandler, Text: "bad", FailedAt: time.Now()}
		errs := from.Settle(s.interrupted(t), []nixie.Settlement{{Delivery: got[0], Verb: nixie.Bury, Failure: failure,
			Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}}})
		if nixie.CodeOf(errs[0]) != nixie.CodeUnavailable {
			t.Errorf("the letter: %v", errs[0])
		}
		if err := d.Close(limited(t)); err != nil {
			t.Errorf("the member leaves: %v", err)
		}
		if offset, _ := b.groupState(t, got[0].Origin.Partition); offset > 0 {
			t.Errorf("%d is committed", offset)
		}
	})
}
