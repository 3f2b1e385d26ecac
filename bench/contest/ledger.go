package contest

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
)

// errOnPurpose is the failure in scenarios with failures.
var errOnPurpose = errors.New("failed on purpose")

// shards keep handlers on several processors from writing to the same memory.
const shards = 64

// Ledger is the handler of all libraries. It behaves as the scenario says and records each task
// that a library delivers.
type Ledger struct {
	scenario Scenario
	runs     uint32          // the number of times that each task must be handled
	seen     []atomic.Uint32 // the number of times that each was, by task number
	sums     [shards]sum
	strays   atomic.Int64   // tasks with a number that no producer gave
	heads    []atomic.Int64 // the next task of each ordered stream
	jumps    atomic.Int64   // tasks that overtook an earlier one
	open     atomic.Int64   // tasks that have not ended
	done     chan struct{}
	seed     maphash.Seed
}

// sum adds up the hashes of the texts. It fills a cache line.
type sum struct {
	hashes atomic.Uint64
	_      [56]byte
}

// NewLedger makes a ledger for tasks 0 to n−1.
func NewLedger(s Scenario, n int) *Ledger {
	l := &Ledger{scenario: s, runs: uint32(s.Runs()), seen: make([]atomic.Uint32, n), done: make(chan struct{}), seed: maphash.MakeSeed()}
	l.open.Store(int64(n))
	return l
}

// KeepOrder makes the ledger check the order within each stream.
func (l *Ledger) KeepOrder() {
	l.heads = make([]atomic.Int64, streams)
	for i := range l.heads {
		l.heads[i].Store(int64(i))
	}
}

// Handle implements Handler.
func (l *Ledger) Handle(t Task) error {
	i := t.I
	if i < 0 || i >= len(l.seen) {
		l.strays.Add(1)
		return nil
	}
	if l.heads != nil && !l.heads[Stream(i)].CompareAndSwap(int64(i), int64(i+streams)) {
		l.jumps.Add(1)
	}
	times := l.seen[i].Add(1)
	l.sums[i%shards].hashes.Add(maphash.String(l.seed, t.P))
	if times < l.runs {
		return errOnPurpose
	}
	if times == l.runs && l.open.Add(-1) == 0 {
		close(l.done)
	}
	if l.scenario.Dies(i) {
		return errOnPurpose
	}
	return nil
}

// Done is closed when every task was handled the required number of times.
func (l *Ledger) Done() <-chan struct{} { return l.done }

// Handled counts the calls of the handler.
func (l *Ledger) Handled() (n int64) {
	for i := range l.seen {
		n += int64(l.seen[i].Load())
	}
	return n + l.strays.Load()
}

// Check returns an error for a task that was not handled, handled too often, or changed.
func (l *Ledger) Check() error {
	var expected, got uint64
	for i := range l.seen {
		if n := l.seen[i].Load(); n != l.runs {
			return fmt.Errorf("task %d was handled %d times, not %d", i, n, l.runs)
		}
		expected += uint64(l.runs) * maphash.String(l.seed, NewTask(i).P)
	}
	for i := range l.sums {
		got += l.sums[i].hashes.Load()
	}
	switch {
	case l.strays.Load() > 0:
		return fmt.Errorf("%d tasks came that no producer sent", l.strays.Load())
	case l.jumps.Load() > 0:
		return fmt.Errorf("%d tasks came out of the order of their streams", l.jumps.Load())
	case got != expected:
		return errors.New("some tasks came with other bytes than they were sent with")
	}
	return nil
}
