package worker

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

const (
	pollWait   = time.Second            // how long one receive may wait for work
	firstPause = 100 * time.Millisecond // after a receive that failed
	maxPause   = 5 * time.Second
)

// receiveLoop keeps enough work in hand until ctx ends.
func (w *Worker) receiveLoop(ctx context.Context) {
	stopWaiting := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.changed.Broadcast()
		w.mu.Unlock()
	})
	defer stopWaiting()
	pause := firstPause
	for {
		room := w.room(ctx)
		if ctx.Err() != nil {
			return
		}
		asked := w.c.Clock()
		got, err := w.c.Source.Receive(ctx, nixie.Want{Max: room, Wait: pollWait, Lease: w.c.Lease, Fresh: w.suspect.Load()})
		if err != nil && ctx.Err() == nil {
			w.c.Observer.OnTrouble(w.c.Queue, err)
			sleep(ctx, pause)
			pause = min(2*pause, maxPause)
			continue
		}
		pause = firstPause
		if len(got) > 0 {
			w.take(ctx, got, w.since(asked)+w.c.Lease)
		}
	}
}

// room waits until enough of what is in hand is settled and returns how many
// more deliveries may be asked for.
func (w *Worker) room(ctx context.Context) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		limit := w.speed.limit()
		room := limit - w.inHand
		if room >= max(1, min(limit/2, limit-w.c.Concurrency)) || ctx.Err() != nil {
			return min(room, nixie.MaxBatch)
		}
		w.changed.Wait()
	}
}

// take puts what was received in hand.
func (w *Worker) take(ctx context.Context, got []*nixie.Delivery, leaseEnd time.Duration) {
	w.c.Observer.OnReceived(w.c.Queue, got)
	b := newBatch(w.base, got, leaseEnd)
	w.mu.Lock()
	w.inHand += len(got)
	w.batches = append(w.batches, b)
	w.mu.Unlock()
	alone := false
	for i := range b.runs {
		r := &b.runs[i]
		if r.d.Crashes > 0 {
			w.suspect.Store(true)
			alone = alone || r.d.Crashes > 1
		}
		if st, judge := w.c.judge(r.d); judge {
			r.state.Store(deciding)
			w.post(b, r, st)
			alone = false
		}
	}
	if alone {
		w.awaitInHand(ctx, len(got))
	}
	w.dispatch(ctx, b)
	if alone {
		w.awaitInHand(ctx, 0)
	}
}

// dispatch offers the batch to as many goroutines as it can use.
func (w *Worker) dispatch(ctx context.Context, b *batch) {
	for range min(w.c.Concurrency, len(b.runs)) {
		select {
		case w.work <- b:
		case <-ctx.Done():
			return // drain releases what nobody started
		}
	}
}

// awaitInHand waits until at most n deliveries are in hand.
func (w *Worker) awaitInHand(ctx context.Context, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inHand > n && ctx.Err() == nil {
		w.changed.Wait()
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// speed follows how long handlers take, to know how much work is a quarter of a
// lease.
type speed struct {
	workers  int
	lease    time.Duration
	most     int
	averaged atomic.Uint64 // float64 bits of the average in seconds; 0 is not known
	mu       sync.Mutex
}

func (s *speed) init(c Config) {
	s.workers, s.lease, s.most = c.Concurrency, c.Lease, c.Prefetch
}

// speedShare is the weight of a new duration in the average.
const speedShare = 1.0 / 16

// add notes a duration. A slow one counts at once, so that a handler that
// becomes slow finds little in hand.
func (s *speed) add(took time.Duration) {
	seconds := max(took.Seconds(), 1e-6)
	if !s.mu.TryLock() {
		return // another duration just now is as good
	}
	defer s.mu.Unlock()
	old := math.Float64frombits(s.averaged.Load())
	if old != 0 && seconds < 2*old {
		seconds = old + (seconds-old)*speedShare
	}
	s.averaged.Store(math.Float64bits(seconds))
}

// limit is how many deliveries may be in hand: one for each goroutine, and what
// all of them do in a quarter of a lease.
func (s *speed) limit() int {
	average := math.Float64frombits(s.averaged.Load())
	if average == 0 {
		return s.workers
	}
	quarter := s.lease.Seconds() / 4 * float64(s.workers) / average
	return int(min(max(quarter, float64(s.workers)), float64(s.most)))
}
