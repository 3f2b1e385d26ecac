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

// Latency is the time from an enqueue to the handler. FromCall counts from the
// beginning of the call, FromReturn from its end, when the message is durable;
// a handler that was faster than the return counts as 0.
type Latency struct {
	FromCall   Quantiles `json:"from_call"`
	FromReturn Quantiles `json:"from_return"`
}

// Quantiles of a sample.
type Quantiles struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// Arrivals of the pick-up scenario: so far apart that the system is idle in
// between, and not in step with anybody's polling.
const (
	arrivalMin  = 5 * time.Millisecond
	arrivalMax  = 15 * time.Millisecond
	arrivalWarm = 20 // that are not counted
)

// arrivals notes when tasks were sent and handled, in nanoseconds since start.
type arrivals struct {
	start    time.Time
	called   []time.Duration
	returned []time.Duration
	handled  []atomic.Int64
	ledger   *Ledger
}

// Handle implements Handler.
func (a *arrivals) Handle(t Task) error {
	if t.I >= 0 && t.I < len(a.handled) {
		a.handled[t.I].Store(int64(time.Since(a.start)))
	}
	return a.ledger.Handle(t)
}

// pickUp sends tasks at moments that were drawn before, whatever became of those
// before them. A call that begins late because the one before it took so long
// counts from the moment it should have begun: who is slow does not thin out the
// questions it is asked.
func (m *Measurement) pickUp(ctx context.Context, lib Library, r *Result) error {
	a := &arrivals{
		start: time.Now(), ledger: NewLedger(m.Setup.Scenario, m.N), handled: make([]atomic.Int64, m.N),
		called: make([]time.Duration, m.N), returned: make([]time.Duration, m.N),
	}
	stop, err := lib.Start(ctx, a)
	if err != nil {
		return err
	}
	err = m.timed(r, func(ended func()) error {
		if err := a.send(ctx, lib); err != nil {
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

func (a *arrivals) send(ctx context.Context, lib Library) error {
	dice := rand.New(rand.NewPCG(1, 2)) // the same moments for all
	due := time.Since(a.start)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range a.called {
		due += arrivalMin + time.Duration(dice.Int64N(int64(arrivalMax-arrivalMin)))
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
		if err := lib.Enqueue(ctx, NewTask(i)); err != nil {
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
