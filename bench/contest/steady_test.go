package contest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// memory is a library that delivers each task at once, the given number of times.
type memory struct {
	Library
	times   int
	handler Handler
}

func (m *memory) Batch() int                        { return 7 }
func (m *memory) Left(context.Context) (int, error) { return 0, nil }
func (m *memory) Close() error                      { return nil }

func (m *memory) Start(_ context.Context, h Handler) (func() error, error) {
	m.handler = h
	return func() error { return nil }, nil
}

func (m *memory) EnqueueBatch(_ context.Context, list []Task) error {
	for _, t := range list {
		for range m.times {
			_ = m.handler.Handle(t)
		}
	}
	return nil
}

// TestSteady: all tasks arrive and are reported, and a second arrival is noticed.
func TestSteady(t *testing.T) {
	for _, c := range []struct {
		times int
		good  bool
	}{{1, true}, {2, false}} {
		var mu sync.Mutex
		var sum Sample
		load := Steady{
			Entrant: &Entrant{Open: func(context.Context, Setup) (Library, error) { return &memory{times: c.times}, nil }},
			Setup:   Setup{Scenario: Drain}, Rate: 10_000, Length: 200 * time.Millisecond, Every: 10 * time.Millisecond,
			Sampled: func(_ time.Duration, s Sample) {
				mu.Lock()
				defer mu.Unlock()
				sum.In, sum.Out = sum.In+s.In, sum.Out+s.Out
			},
		}
		if err := load.Run(t.Context()); (err == nil) != c.good {
			t.Errorf("handed out %d times: %v", c.times, err)
		}
		if sum.In == 0 || sum.In > 2000 || c.good && sum.Out < sum.In { // a task arrives before its call returns
			t.Errorf("handed out %d times: told of %+v", c.times, sum)
		}
	}
}

// TestSteadyStops: the load ends with its context.
func TestSteadyStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	load := Steady{
		Entrant: &Entrant{Open: func(context.Context, Setup) (Library, error) { return &memory{times: 1}, nil }},
		Setup:   Setup{Scenario: Drain}, Rate: 1000, Length: time.Hour, Every: time.Millisecond,
		Sampled: func(time.Duration, Sample) { cancel() },
	}
	if err := load.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLags(t *testing.T) {
	var l lags
	if got := l.take(); got.P50 > lagStep || got.P99 > lagStep {
		t.Errorf("of none: %v", got)
	}
	for i := range 100 {
		l.add(time.Duration(i) * time.Millisecond)
	}
	l.add(time.Hour) // counts in the last step
	if got, want := l.take(), (Quantiles{P50: 50*time.Millisecond + lagStep, P99: 99*time.Millisecond + lagStep}); got != want {
		t.Errorf("%v, not %v", got, want)
	}
	if got := l.take(); got.P99 > lagStep {
		t.Errorf("begun anew: %v", got)
	}
}
