package redrive_test

import (
	"context"
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

// shelf is a channel in memory from which a move reads letters. It notes each call that makes it
// remember.
type shelf struct {
	mu    sync.Mutex
	rest  []broker.Record
	given [][]string // by calls of Next that are not answered
	kept  []string
	wrong []string
}

func newShelf(n int) *shelf {
	s := &shelf{}
	for i := range n {
		s.rest = append(s.rest, broker.Record{Channel: "in.dlq", Offset: int64(i), ID: [16]byte{1, 14: byte(i >> 8), 15: byte(i)},
			Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(1_700_000_000_000)})
	}
	return s
}

func (s *shelf) Next(_ context.Context, most int) ([]broker.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.rest))
	out := s.rest[:n]
	s.rest = s.rest[n:]
	if n > 0 {
		var given []string
		for _, r := range out {
			given = append(given, string(r.Value))
		}
		s.given = append(s.given, given)
	}
	return out, nil
}

func (s *shelf) Done(_ context.Context, calls ...[]*broker.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range calls {
		if len(s.given) == 0 {
			s.wrong = append(s.wrong, "more answers than calls")
			return nil
		}
		for _, r := range list {
			if !slices.Contains(s.given[0], string(r.Value)) {
				s.wrong = append(s.wrong, string(r.Value)+" is of another call")
			}
			s.kept = append(s.kept, string(r.Value))
		}
		s.given = s.given[1:]
	}
	return nil
}

func (s *shelf) Left() int64 { s.mu.Lock(); defer s.mu.Unlock(); return int64(len(s.rest)) }
func (s *shelf) Close()      {}

// check reports the errors that the reader has seen.
func (s *shelf) check(t *testing.T) {
	t.Helper()
	if len(s.wrong)+len(s.given) > 0 {
		t.Errorf("%q, and %d calls have no answer", s.wrong, len(s.given))
	}
}

// slowPost is a broker that confirms only when the test lets it.
type slowPost struct {
	post
	let  chan struct{}
	mu   sync.Mutex
	sent []string
}

func (p *slowPost) Publish(ctx context.Context, list []broker.Publication) func() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers := p.post.Publish(ctx, list)
	for _, r := range list {
		p.sent = append(p.sent, string(r.Value))
	}
	return func() []error { <-p.let; return answers() }
}

func (p *slowPost) count() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.sent) }

// run starts a move.
func runMove(t *testing.T, m redrive.Mover) (done func() (redrive.Moved, error)) {
	t.Helper()
	var got redrive.Moved
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, err = m.Run(t.Context())
	}()
	return func() (redrive.Moved, error) { <-ended; return got, err }
}

// While the broker confirms one part the next are sent, in their order. Never more than a batch is
// sent and not remembered.
func TestPartsAreSentWhileOthersAreConfirmed(t *testing.T) {
	for _, batch := range []int{1, 3, 20} {
		synctest.Test(t, func(t *testing.T) {
			from, to := newShelf(50), &slowPost{let: make(chan struct{})}
			done := runMove(t, redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: batch})
			synctest.Wait()
			if n := to.count(); n != batch || len(from.kept) > 0 {
				t.Errorf("%d are on their way of a batch of %d, %d are remembered", n, batch, len(from.kept))
			}
			close(to.let)
			got, err := done()
			if err != nil || got.Redriven != 50 || got.Read != 50 || got.To["in"] != 50 || got.Left != 0 {
				t.Errorf("%+v, %v", got, err)
			}
			if !slices.Equal(to.sent, from.kept) || len(from.kept) != 50 || to.sent[7] != "7" {
				t.Errorf("sent %q, remembered %q", to.sent, from.kept)
			}
			from.check(t)
		})
	}
}

// Max is exact also when some records in flight are refused.
func TestMaxOfPartsOnTheirWay(t *testing.T) {
	from, to := newShelf(50), &post{answers: map[string]error{}}
	for i := range 50 {
		if i%3 == 0 {
			to.answers[fmt.Sprint(i)] = nixie.Errorf(nixie.CodeLimit, "too large")
		}
	}
	got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 8, Max: 20}.Run(t.Context())
	if err != nil || got.Redriven != 20 || len(to.sent) != 20 || len(from.kept) != 20 || got.Skipped < 10 {
		t.Errorf("%+v, %d sent, %d remembered, %v", got, len(to.sent), len(from.kept), err)
	}
	from.check(t)
}

// A record that the broker does not confirm is not remembered, the others of its part are, and the
// move ends.
func TestAPartThatIsNotConfirmed(t *testing.T) {
	from, to := newShelf(50), &post{answers: map[string]error{"5": nixie.Errorf(nixie.CodeOutcomeUnknown, "no answer")}}
	got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 8}.Run(t.Context())
	if nixie.CodeOf(err) != nixie.CodeOutcomeUnknown || slices.Contains(from.kept, "5") || int(got.Redriven) != len(from.kept) ||
		len(from.kept) < 5 || len(from.kept) > 14 {
		t.Errorf("%+v, remembered %q, %v", got, from.kept, err)
	}
	from.check(t)
	// A dry run counts, and remembers nothing.
	from = newShelf(50)
	got, err = redrive.Mover{From: from, Destination: redrive.Destination{To: to, Channel: "in"}, Batch: 8, DryRun: true}.Run(t.Context())
	if err != nil || got.Redriven != 50 || len(from.kept) > 0 {
		t.Errorf("%+v, remembered %q, %v", got, from.kept, err)
	}
	from.check(t)
}
