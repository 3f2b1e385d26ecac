package contest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// Result is what one process measured.
type Result struct {
	N       int           `json:"n"`
	Wall    time.Duration `json:"wall_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Memory  int64         `json:"peak_memory_bytes"`
	File    int64         `json:"file_bytes"`
	Latency *Latency      `json:"latency,omitempty"`
}

// Rate is messages a second.
func (r *Result) Rate() float64 { return float64(r.N) / r.Wall.Seconds() }

// Task sizes and waits of a measurement.
const (
	warmUp   = 100              // calls before those that are measured, of the enqueue scenarios
	patience = 3 * time.Minute  // after it a library is said to hang
	look     = time.Millisecond // between two looks at what is left
)

// Measurement is one scenario of one library with n tasks.
type Measurement struct {
	Entrant *Entrant
	Setup   Setup
	N       int
	Profile io.Writer // gets a processor profile of the measured part
}

// Fill enqueues the tasks that are to be drained.
func (m *Measurement) Fill(ctx context.Context) error {
	return m.with(ctx, func(lib Library) error {
		return produceBatches(ctx, lib, 0, m.N)
	})
}

// Run measures.
func (m *Measurement) Run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()
	r := Result{N: m.N}
	err := m.with(ctx, func(lib Library) (err error) {
		switch {
		case m.Setup.Scenario.Enqueues():
			err = m.enqueue(ctx, lib, &r)
		case m.Setup.Scenario.Drains():
			err = m.drain(ctx, lib, &r)
		default:
			err = m.pickUp(ctx, lib, &r)
		}
		r.Memory = peakMemory()
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("%s, %s: %w", m.Entrant.Name, m.Setup.Scenario, err)
	}
	r.File, err = folderSize(m.Setup.Folder)
	return r, err
}

func (m *Measurement) with(ctx context.Context, do func(Library) error) error {
	lib, err := m.Entrant.Open(ctx, m.Setup)
	if err != nil {
		return err
	}
	return errors.Join(do(lib), lib.Close())
}

// timed runs the part that counts.
func (m *Measurement) timed(r *Result, do func() error) error {
	if m.Profile != nil {
		if err := pprof.StartCPUProfile(m.Profile); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	start := read()
	err := do()
	r.Wall, r.CPU = start.since()
	return err
}

// enqueue measures producers. What they sent is read from the store after.
func (m *Measurement) enqueue(ctx context.Context, lib Library, r *Result) error {
	warm := min(warmUp, m.N/2)
	r.N = m.N - warm
	for _, t := range Tasks(0, warm) {
		if err := lib.Enqueue(ctx, t); err != nil {
			return err
		}
	}
	err := m.timed(r, func() error {
		switch m.Setup.Scenario {
		case EnqueueOne:
			return produce(ctx, lib, warm, m.N, 1)
		case EnqueueMany:
			return produce(ctx, lib, warm, m.N, producers)
		default:
			return produceBatches(ctx, lib, warm, m.N)
		}
	})
	if err != nil {
		return err
	}
	ledger := NewLedger(m.Setup.Scenario, m.N)
	if err := lib.Each(ctx, ledger.Handle); err != nil {
		return err
	}
	return ledger.Check()
}

// produce enqueues tasks from several goroutines that take the next number from
// each other.
func produce(ctx context.Context, lib Library, from, to, producers int) error {
	var next atomic.Int64
	next.Store(int64(from))
	errs := make([]error, producers)
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for errs[p] == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					return
				}
				errs[p] = lib.Enqueue(ctx, NewTask(i))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// produceBatches enqueues tasks in batches.
func produceBatches(ctx context.Context, lib Library, from, to int) error {
	for ; from < to; from += lib.Batch() {
		if err := lib.EnqueueBatch(ctx, Tasks(from, min(from+lib.Batch(), to))); err != nil {
			return err
		}
	}
	return nil
}

// drain measures from the start of the workers until the last outcome is in the
// store.
func (m *Measurement) drain(ctx context.Context, lib Library, r *Result) error {
	ledger := NewLedger(m.Setup.Scenario, m.N)
	var stop func() error
	err := m.timed(r, func() (err error) {
		if stop, err = lib.Start(ctx, ledger); err != nil {
			return err
		}
		return settled(ctx, lib, ledger)
	})
	if stop != nil {
		err = errors.Join(err, stop())
	}
	if err != nil {
		return err
	}
	return m.check(ctx, lib, ledger)
}

// settled waits until all tasks are handled and nothing is left.
func settled(ctx context.Context, lib Library, ledger *Ledger) error {
	select {
	case <-ledger.Done():
	case <-ctx.Done():
		return fmt.Errorf("%w; the handler was called %d times", context.Cause(ctx), ledger.Handled())
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		left, err := lib.Left(ctx)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; %d messages are left", context.Cause(ctx), left)
		}
	}
}

// check compares what happened with what should have.
func (m *Measurement) check(ctx context.Context, lib Library, ledger *Ledger) error {
	if err := ledger.Check(); err != nil {
		return err
	}
	dead, err := lib.Dead(ctx)
	if err != nil {
		return err
	}
	if want := m.Setup.Scenario.Dead(m.N); dead != want {
		return fmt.Errorf("%d dead letters, not %d", dead, want)
	}
	if p, ok := lib.(Prover); ok {
		return p.Prove(ctx, m.Setup.Scenario, m.N)
	}
	return nil
}
