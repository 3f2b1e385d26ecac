package contest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Steady is a constant load of one producer and the workers.
type Steady struct {
	Entrant *Entrant
	Setup   Setup
	Rate    int // messages a second
	Length  time.Duration
	Every   time.Duration                    // between two samples
	Sampled func(at time.Duration, s Sample) // gets each sample
}

// Sample describes a part of a steady load.
type Sample struct {
	In, Out   int64 // messages
	Wall      time.Duration
	CPU       time.Duration
	ServerCPU time.Duration
	Lag       Quantiles // from the beginning of the enqueue call to the handler
}

// pace is the interval at which the producer sends due messages.
const pace = 10 * time.Millisecond

// Run runs the load, and then waits until all tasks are done and checked.
func (s *Steady) Run(ctx context.Context) (err error) {
	lib, err := s.Entrant.Open(ctx, s.Setup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.Close()) }()
	n := int(float64(s.Rate) * s.Length.Seconds())
	f := &flow{Ledger: NewLedger(s.Setup.Scenario, n), start: time.Now(), sent: make([]int64, n)}
	stop, err := lib.Start(ctx, f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	sampling := make(chan struct{})
	go func() {
		defer close(sampling)
		s.sample(ctx, f)
	}()
	err = f.produce(ctx, lib, s.Rate)
	cancel()
	<-sampling
	if err == nil {
		waiting, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience,
			fmt.Errorf("not done %s after the last was sent", patience))
		err = settled(waiting, lib, f.Ledger, func() {})
		cancel()
	}
	return errors.Join(err, stop(), f.Check())
}

// flow is a ledger that measures the latency of messages.
type flow struct {
	*Ledger
	start   time.Time
	sent    []int64 // times of sending in nanoseconds since start, by task number
	in, out atomic.Int64
	lags    lags
}

// Handle implements Handler.
func (f *flow) Handle(t Task) error {
	if t.I >= 0 && t.I < len(f.sent) && f.seen[t.I].Load() == 0 { // a retry does not count
		f.lags.add(time.Since(f.start) - time.Duration(atomic.LoadInt64(&f.sent[t.I])))
		f.out.Add(1)
	}
	return f.Ledger.Handle(t)
}

// produce sends due messages, the library's best number in each call.
func (f *flow) produce(ctx context.Context, lib Library, rate int) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for from := 0; from < len(f.sent); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		for due := min(int(time.Since(f.start).Seconds()*float64(rate)), len(f.sent)); from < due; {
			to := min(from+lib.Batch(), due)
			now := int64(time.Since(f.start))
			for i := from; i < to; i++ {
				atomic.StoreInt64(&f.sent[i], now)
			}
			if err := lib.EnqueueBatch(ctx, Tasks(from, to)); err != nil {
				return err
			}
			f.in.Add(int64(to - from))
			from = to
		}
	}
	return nil
}

// sample reports each part until ctx ends. It drops a part that is cut short.
func (s *Steady) sample(ctx context.Context, f *flow) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		before, server := read(), ServerTime(s.Setup.Postmaster)
		in, out := f.in.Load(), f.out.Load()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := Sample{In: f.in.Load() - in, Out: f.out.Load() - out, ServerCPU: ServerTime(s.Setup.Postmaster) - server, Lag: f.lags.take()}
		now.Wall, now.CPU = before.since()
		s.Sampled(time.Since(f.start), now)
	}
}

// lags counts latencies in steps.
type lags [100_000]atomic.Int64

const lagStep = 100 * time.Microsecond

func (l *lags) add(d time.Duration) { l[min(max(int(d/lagStep), 0), len(l)-1)].Add(1) }

// take returns the quantiles, each as the end of its step, and resets the counts.
func (l *lags) take() (q Quantiles) {
	counts := make([]int64, len(l))
	var all, seen int64
	for i := range l {
		counts[i] = l[i].Swap(0)
		all += counts[i]
	}
	for i, n := range counts {
		seen += n
		at := time.Duration(i+1) * lagStep
		if q.P50 == 0 && 2*seen >= all {
			q.P50 = at
		}
		if 100*seen >= 99*all {
			q.P99 = at
			return q
		}
	}
	return q
}
