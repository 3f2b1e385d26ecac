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

// Result is the result of one process.
type Result struct {
	N       int           `json:"n"`
	Wall    time.Duration `json:"wall_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Memory  int64         `json:"peak_memory_bytes"`
	Latency *Latency      `json:"latency,omitempty"`

	// Sizes after all have closed: files, or tables and indexes.
	File    int64 `json:"file_bytes"`
	Indexes int64 `json:"index_bytes,omitempty"`

	DeadRows int64 `json:"dead_rows,omitempty"` // that a server still has to remove

	// Of a server, if there is one.
	ServerCPU time.Duration `json:"server_cpu_ns,omitempty"`
	WAL       int64         `json:"wal_bytes,omitempty"` // from the first enqueue to the end
}

// Rate is messages a second.
func (r *Result) Rate() float64 { return float64(r.N) / r.Wall.Seconds() }

// WALEach returns the bytes of WAL that a server wrote for each message.
func (r *Result) WALEach() float64 { return float64(r.WAL) / float64(r.N) }

// Task sizes and waits of a measurement.
const (
	warmUp   = 100              // calls before those that are measured, of the enqueue scenarios
	patience = 3 * time.Minute  // after this time a library counts as hanging
	poll     = time.Millisecond // least time between two polls of Left
	rest     = 4                // the pause in lengths of the poll before, because a poll loads the store
)

// Measurement measures one scenario of one library with n tasks.
type Measurement struct {
	Entrant *Entrant
	Setup   Setup
	N       int
	Profile io.Writer // gets a processor profile of the measured part
}

// Fill enqueues the tasks of a drain.
func (m *Measurement) Fill(ctx context.Context) error {
	return m.with(ctx, func(lib Library) error { return produceBatches(ctx, lib, 0, m.N, 1) })
}

// Run measures.
func (m *Measurement) Run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()
	r := Result{N: m.N}
	err := m.with(ctx, func(lib Library) (err error) {
		switch {
		case m.Setup.Scenario.Asks():
			err = m.ask(ctx, lib, &r)
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
	return r, nil
}

// Open opens the library, which makes its tables, and adds the burden.
func (m *Measurement) Open(ctx context.Context) error {
	return m.with(ctx, func(lib Library) error {
		if !m.Setup.Scenario.Burdened() {
			return nil
		}
		return lib.(Bearer).Burden(ctx)
	})
}

func (m *Measurement) with(ctx context.Context, do func(Library) error) error {
	lib, err := m.Entrant.Open(ctx, m.Setup)
	if err != nil {
		return err
	}
	return errors.Join(do(lib), lib.Close())
}

// timed runs the measured part. The part ends when it returns, or at its last report that it may
// have ended.
func (m *Measurement) timed(r *Result, do func(ended func()) error) error {
	if m.Profile != nil {
		if err := pprof.StartCPUProfile(m.Profile); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	said := false
	before, start := ServerTime(m.Setup.Postmaster), read()
	take := func() {
		r.Wall, r.CPU = start.since()
		r.ServerCPU = ServerTime(m.Setup.Postmaster) - before
	}
	err := do(func() { said = true; take() })
	if !said {
		take()
	}
	return err
}

// enqueue measures producers, and reads their tasks from the store afterwards.
func (m *Measurement) enqueue(ctx context.Context, lib Library, r *Result) error {
	warm := min(warmUp, m.N/2)
	r.N = m.N - warm
	for _, t := range Tasks(0, warm) {
		if err := lib.Enqueue(ctx, t); err != nil {
			return err
		}
	}
	err := m.timed(r, func(func()) error {
		switch m.Setup.Scenario {
		case EnqueueOne:
			return produce(ctx, lib, warm, m.N, 1)
		case EnqueueMany:
			return produce(ctx, lib, warm, m.N, producers)
		case EnqueueBatches:
			return produceBatches(ctx, lib, warm, m.N, batchProducers)
		default:
			return produceBatches(ctx, lib, warm, m.N, 1)
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

// produce enqueues tasks one by one.
func produce(ctx context.Context, lib Library, from, to, producers int) error {
	return share(from, to, 1, producers, func(from, _ int) error { return lib.Enqueue(ctx, NewTask(from)) })
}

// produceBatches enqueues tasks in batches.
func produceBatches(ctx context.Context, lib Library, from, to, producers int) error {
	return share(from, to, lib.Batch(), producers, func(from, to int) error { return lib.EnqueueBatch(ctx, Tasks(from, to)) })
}

// share divides the steps among the producers.
func share(from, to, step, producers int, do func(from, to int) error) error {
	var next atomic.Int64
	next.Store(int64(from))
	errs := make([]error, producers)
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for errs[p] == nil {
				i := int(next.Add(int64(step))) - step
				if i >= to {
					return
				}
				errs[p] = do(i, min(i+step, to))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// drain measures from the start of the workers until the last outcome is in the
// store.
func (m *Measurement) drain(ctx context.Context, lib Library, r *Result) (err error) {
	ledger := NewLedger(m.Setup.Scenario, m.N)
	if m.Setup.Scenario.Ordered() && m.Entrant.Streams {
		ledger.KeepOrder()
	}
	handler, after := Handler(ledger), func() error { return nil }
	if m.Setup.Scenario == Foreign {
		if handler, after, err = m.withForeign(ctx, lib, ledger); err != nil {
			return err
		}
	}
	var stop func() error
	err = m.timed(r, func(ended func()) (err error) {
		if stop, err = lib.Start(ctx, handler); err != nil {
			return err
		}
		return settled(ctx, lib, ledger, ended)
	})
	if err == nil {
		err = after()
	}
	if stop != nil {
		err = errors.Join(err, stop())
	}
	if err != nil {
		return err
	}
	return m.check(ctx, lib, ledger)
}

// settled waits until all tasks are handled and none is left. Before each poll it reports that the
// end may be reached, because the poll is not part of the work.
func settled(ctx context.Context, lib Library, ledger *Ledger, ended func()) error {
	select {
	case <-ledger.Done():
	case <-ctx.Done():
		return fmt.Errorf("%w; the handler was called %d times", context.Cause(ctx), ledger.Handled())
	}
	for {
		ended()
		began := time.Now()
		left, err := lib.Left(ctx)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-time.After(max(poll, rest*time.Since(began))):
		case <-ctx.Done():
			return fmt.Errorf("%w; %d messages are left", context.Cause(ctx), left)
		}
	}
}

// check compares the result with the expected one.
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
		return p.Prove(ctx, m.Setup.Scenario, m.Setup.Scenario.all(m.N))
	}
	return nil
}
