package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/worker"
)

// script is a source whose answers a test writes. A nil function does what a source usually does.
type script struct {
	receive func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error)
	extend  func(ctx context.Context, ds []*nixie.Delivery) []error
	settle  func(ctx context.Context, sts []nixie.Settlement) []error

	mu      sync.Mutex
	feed    [][]*nixie.Delivery
	settled []nixie.Settlement // accepted, in order
	wants   []nixie.Want
	extends int
}

func (s *script) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	s.mu.Lock()
	s.wants = append(s.wants, want)
	var got []*nixie.Delivery
	if len(s.feed) > 0 && s.receive == nil {
		got, s.feed = s.feed[0], s.feed[1:]
	}
	s.mu.Unlock()
	if s.receive != nil {
		return s.receive(ctx, want)
	}
	if len(got) == 0 {
		wait(ctx, want.Wait)
	}
	return got, nil
}

// wait waits for d or the end of ctx. It makes no timer that is due at once:
// the race detector of Go 1.26 can crash on those inside a bubble.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *script) Extend(ctx context.Context, ds []*nixie.Delivery, _ time.Duration) []error {
	s.mu.Lock()
	s.extends++
	s.mu.Unlock()
	if s.extend != nil {
		return s.extend(ctx, ds)
	}
	return make([]error, len(ds))
}

func (s *script) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	errs := make([]error, len(sts))
	if s.settle != nil {
		errs = s.settle(ctx, sts)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, err := range errs {
		if err == nil && i < len(sts) {
			s.settled = append(s.settled, sts[i])
		}
	}
	return errs
}

// verbs returns the settlements as text.
func (s *script) verbs() map[string]nixie.Verb {
	s.mu.Lock()
	defer s.mu.Unlock()
	verbs := map[string]nixie.Verb{}
	for _, st := range s.settled {
		if verbs[st.Delivery.Key] != "" {
			panic("settled twice: " + st.Delivery.Key)
		}
		verbs[st.Delivery.Key] = st.Verb
	}
	return verbs
}

// failure returns the failure in the settlement of the message.
func (s *script) failure(t *testing.T, key string) *nixie.Failure {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.settled {
		if st.Delivery.Key == key && st.Failure != nil {
			return st.Failure
		}
	}
	t.Fatalf("no failure of %s", key)
	return nil
}

func delivery(key string) *nixie.Delivery {
	d := &nixie.Delivery{Message: nixie.Message{Key: key, Queue: "q", Attempts: 1, Deliveries: 1, Generation: 1},
		Lease: nixie.Lease{Number: 1}}
	lease.Ready(d)
	return d
}

func deliveries(n int) []*nixie.Delivery {
	var ds []*nixie.Delivery
	for i := range n {
		ds = append(ds, delivery(fmt.Sprint(i)))
	}
	return ds
}

func suspect(key string, crashes int) *nixie.Delivery {
	d := delivery(key)
	d.Crashes, d.Attempts, d.Deliveries = crashes, crashes+1, crashes+1
	return d
}

// going is a worker that runs.
type going struct {
	*worker.Worker
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, c worker.Config) *going {
	t.Helper()
	w, err := worker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "value"))
	g := &going{w, t, stop, make(chan error, 1)}
	go func() { g.done <- w.Run(ctx) }()
	return g
}

type (
	valueKey struct{}
	otherKey struct{}
)

// end stops the worker and checks that nothing is left.
func (g *going) end() {
	g.t.Helper()
	g.stop()
	if err := <-g.done; err != nil {
		g.t.Errorf("Run: %v", err)
	}
	if n := g.InHand(); n != 0 {
		g.t.Errorf("%d in hand when Run returned", n)
	}
}

// troubles collects the errors that an observer gets.
type troubles struct {
	mu   sync.Mutex
	errs []error
	late int
	lost int
}

func (o *troubles) observer() *nixie.Observer {
	return &nixie.Observer{
		Trouble: func(_ string, err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.errs = append(o.errs, err)
		},
		Late: func(*nixie.Delivery, time.Duration) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.late++
		},
		Settled: func(_ string, _ []nixie.Settlement, errs []error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, err := range errs {
				if nixie.CodeOf(err) == nixie.CodeLeaseLost {
					o.lost++
				}
			}
		},
	}
}

func (o *troubles) count() (errs, late, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.errs), o.late, o.lost
}

func each(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func coded(code nixie.Code) error { return nixie.Errorf(code, "as the test wants it") }

var errBoom = errors.New("boom")

func handler(f func(context.Context, *nixie.Delivery) error) nixie.Handler {
	return nixie.HandlerFunc(f)
}

func succeed(context.Context, *nixie.Delivery) error { return nil }
