package contest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// Latency is the time from an enqueue to the handler. FromCall counts from the beginning of the
// call, FromReturn from its end, when the message is durable. A handler that was faster than the
// return counts as 0.
type Latency struct {
	FromCall   Quantiles `json:"from_call"`
	FromReturn Quantiles `json:"from_return"`
}

// Quantiles of a sample.
type Quantiles struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// Arrivals of the pick-up scenario. Their intervals leave the system idle and match no library's
// polling.
const (
	arrivalMin  = 5 * time.Millisecond
	arrivalMax  = 15 * time.Millisecond
	arrivalWarm = 20 // the first ones, which do not count
)

// arrivals records the times of sending and handling, in nanoseconds since start.
type arrivals struct {
	start    time.Time
	called   []time.Duration
	returned []time.Duration
	handled  []atomic.Int64
	ledger   *Ledger
	patient  bool // the interval to the next begins when the call before has returned
}

// Handle implements Handler.
func (a *arrivals) Handle(t Task) error {
	if t.I >= 0 && t.I < len(a.handled) {
		a.handled[t.I].Store(int64(time.Since(a.start)))
	}
	return a.ledger.Handle(t)
}

// pickUp sends tasks at times that were drawn before, also when earlier calls are late. A call that
// begins late because of the one before counts from its planned time. So a slow library does not
// reduce its own load.
func (m *Measurement) pickUp(ctx context.Context, lib Library, r *Result) error {
	a := m.arrivals()
	stop, err := lib.Start(ctx, a)
	if err != nil {
		return err
	}
	err = m.timed(r, func(ended func()) error {
		if err := a.send(ctx, lib.Enqueue); err != nil {
			return err
		}
		return settled(ctx, lib, a.ledger, ended)
	})
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	r.Latency = a.latency(min(arrivalWarm, m.N/2))
	return m.check(ctx, lib, a.ledger)
}

func (m *Measurement) arrivals() *arrivals {
	return &arrivals{
		start: time.Now(), ledger: NewLedger(m.Setup.Scenario, m.N), handled: make([]atomic.Int64, m.N),
		called: make([]time.Duration, m.N), returned: make([]time.Duration, m.N),
	}
}

func (a *arrivals) send(ctx context.Context, enqueue func(context.Context, Task) error) error {
	rng := rand.New(rand.NewPCG(1, 2)) // the same times for all
	due := time.Since(a.start)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range a.called {
		if a.patient {
			due = time.Since(a.start)
		}
		due += arrivalMin + time.Duration(rng.Int64N(int64(arrivalMax-arrivalMin)))
		late := time.Since(a.start) > due
		if !late {
			timer.Reset(due - time.Since(a.start))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return fmt.Errorf("%w; %d tasks were sent", context.Cause(ctx), i)
			}
		}
		a.called[i] = time.Since(a.start)
		if late {
			a.called[i] = due
		}
		if err := enqueue(ctx, NewTask(i)); err != nil {
			return err
		}
		a.returned[i] = time.Since(a.start)
	}
	return nil
}

func (a *arrivals) latency(warm int) *Latency {
	var calls, returns []time.Duration
	for i := warm; i < len(a.called); i++ {
		at := time.Duration(a.handled[i].Load())
		calls = append(calls, at-a.called[i])
		returns = append(returns, max(at-a.returned[i], 0))
	}
	return &Latency{FromCall: quantiles(calls), FromReturn: quantiles(returns)}
}

func quantiles(sample []time.Duration) Quantiles {
	if len(sample) == 0 {
		return Quantiles{}
	}
	slices.Sort(sample)
	at := func(percent int) time.Duration { return sample[min(len(sample)*percent/100, len(sample)-1)] }
	return Quantiles{P50: at(50), P99: at(99)}
}
