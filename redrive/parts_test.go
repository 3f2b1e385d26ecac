package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// strict is a shelf that fails to remember, or has little room for it.
type strict struct {
	*shelf
	fails error // of Done
	room  int   // calls that may be open; 0: any number
}

func (s *strict) Next(ctx context.Context, most int) ([]broker.Record, error) {
	s.mu.Lock()
	full := s.room > 0 && len(s.given) >= s.room
	s.mu.Unlock()
	if full {
		return nil, nixie.Errorf(nixie.CodeLimit, "no room")
	}
	return s.shelf.Next(ctx, most)
}

func (s *strict) Done(ctx context.Context, calls ...[]*broker.Record) error {
	if err := errors.Join(s.fails, ctx.Err()); err != nil {
		return err
	}
	return s.shelf.Done(ctx, calls...)
}

// parts is a broker that confirms each call when the test says so. It notes the records that it was
// given, and whether a caller took them back.
type parts struct {
	post
	mu   sync.Mutex
	lets []chan struct{} // by call
	ctxs []context.Context
}

func (p *parts) Publish(ctx context.Context, list []broker.Publication) func() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers, let := p.post.Publish(ctx, list), make(chan struct{})
	p.lets, p.ctxs = append(p.lets, let), append(p.ctxs, ctx)
	return func() []error { <-let; return answers() }
}

func (p *parts) calls() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.lets) }

func (p *parts) let(n int) { p.mu.Lock(); defer p.mu.Unlock(); close(p.lets[n]) }

func (s *shelf) remembered() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.kept) }

// A batch goes in four parts, and the broker confirms each by itself. The reader remembers them in
// their order, also if a later one is confirmed first.
func TestPartsAreRememberedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newShelf(20), &parts{}
		done := runMove(t, redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 20})
		synctest.Wait()
		if to.calls() != 4 {
			t.Fatalf("%d parts are on their way", to.calls())
		}
		to.let(1)
		to.let(2)
		synctest.Wait()
		if n := from.remembered(); n != 0 {
			t.Errorf("%d are remembered before those that went first", n)
		}
		to.let(0)
		synctest.Wait()
		if n := from.remembered(); n != 15 {
			t.Errorf("%d of 15 are remembered", n)
		}
		to.let(3)
		if got, err := done(); err != nil || got.Redriven != 20 {
			t.Errorf("%+v, %v", got, err)
		}
		from.check(t)
	})
}

// A move that is stopped waits for the parts in flight and remembers them. It does not take them
// back.
func TestStoppedWithPartsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := &strict{shelf: newShelf(50)}, &parts{}
		ctx, stop := context.WithCancel(t.Context())
		var got redrive.Moved
		var err error
		var over sync.WaitGroup
		over.Go(func() {
			got, err = redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 20, Rate: 5,
				Wait: func(ctx context.Context, _ time.Duration) error {
					<-ctx.Done()
					return ctx.Err()
				}}.Run(ctx)
		})
		synctest.Wait()
		sent := to.calls()
		stop()
		synctest.Wait()
		for n := range sent {
			if to.ctxs[n].Err() != nil {
				t.Error("what is on its way was taken back")
			}
			to.let(n)
		}
		over.Wait()
		if !errors.Is(err, context.Canceled) || sent == 0 || int(got.Redriven) != from.remembered() || len(to.sent) != from.remembered() {
			t.Errorf("%+v, %d sent, %d remembered, %v", got, len(to.sent), from.remembered(), err)
		}
	})
}

// A move reports the errors of its last parts: a record that was not confirmed, and a part that was
// not remembered.
func TestTheLastPartsFail(t *testing.T) {
	from, to := newShelf(20), &post{answers: map[string]error{"19": nixie.Errorf(nixie.CodeOutcomeUnknown, "no answer")}}
	got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 20}.Run(t.Context())
	if nixie.CodeOf(err) != nixie.CodeOutcomeUnknown || got.Redriven != 19 || len(from.kept) != 19 {
		t.Errorf("%+v, %d remembered, %v", got, len(from.kept), err)
	}
	forgets := &strict{shelf: newShelf(20), fails: nixie.Errorf(nixie.CodeUnavailable, "no group")}
	if got, err := (redrive.Mover{From: forgets, Destination: redrive.Destination{To: &post{}, Channel: "in"},
		Batch: 20}).Run(t.Context()); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("%+v, %v", got, err)
	}
}

// A reader without room for more gets it when it remembers a part, and the move goes on.
func TestAReaderWithLittleRoom(t *testing.T) {
	from, to := &strict{shelf: newShelf(50), room: 2}, &post{}
	got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 20}.Run(t.Context())
	if err != nil || got.Redriven != 50 || len(from.kept) != 50 {
		t.Errorf("%+v, %d remembered, %v", got, len(from.kept), err)
	}
	from.check(t)
}

// Some records of a part are not chosen, some are refused before they are sent, some by the broker,
// and some go to the quarantine. The move counts each of them, and the reader remembers only those
// that were sent.
func TestEachOfAPartIsJudgedByItself(t *testing.T) {
	from, to := newShelf(24), &post{answers: map[string]error{}}
	var want []string
	for i := range from.rest {
		switch text := fmt.Sprint(i); i % 6 {
		case 0, 1: // refused below; not chosen
		case 2:
			to.answers[text] = nixie.Errorf(nixie.CodeLimit, "too large")
		case 3:
			from.rest[i].Headers = []broker.RecordHeader{{Name: broker.HeaderRedriveCount, Value: []byte("3")}}
			fallthrough
		default:
			want = append(want, text)
		}
	}
	number := func(value []byte) (n int) { _, _ = fmt.Sscan(string(value), &n); return n % 6 }
	got, err := redrive.Mover{
		From: from, Batch: 24, Choose: func(r *broker.Record) bool { return number(r.Value) != 1 },
		Destination: redrive.Destination{To: to, Channel: "in", Quarantine: "aside", MaxRedrives: 3,
			Transform: func(_ context.Context, r *broker.Returning) error {
				if number(r.Value) == 0 {
					return errors.New("cannot be repaired")
				}
				return nil
			}},
	}.Run(t.Context())
	if err != nil || got.Read != 24 || got.Redriven != 8 || got.Quarantined != 4 || got.Passed != 4 || got.Skipped != 8 ||
		len(got.Refused) != 8 || got.To["in"] != 8 || got.To["aside"] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if !slices.Equal(from.kept, want) {
		t.Errorf("remembered %q, want %q", from.kept, want)
	}
	from.check(t)
}

// The rate of a move counts for all its parts together.
func TestRateOfParts(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	begun := now
	got, err := redrive.Mover{
		From: newShelf(30), Destination: redrive.Destination{To: &post{}, Channel: "in"}, Batch: 8, Rate: 10,
		Clock: func() time.Time { return now },
		Wait:  func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
	}.Run(t.Context())
	if took := now.Sub(begun); err != nil || got.Redriven != 30 || took < 2900*time.Millisecond || took > 3*time.Second {
		t.Errorf("%+v in %s, %v", got, took, err)
	}
}
