package store

import (
	"context"
	"sync"
	"time"
)

// Watch looks for work of all queues that callers wait for, in one goroutine, so that not each of
// them has to poll. A store makes Watch of [Features] with it.
//
// It looks soon after something has happened, and then less and less often. It is safe for
// concurrent use.
type Watch struct {
	wakes *Wakes
	look  func(ctx context.Context, queues []string) (Found, error)
	poked chan struct{}

	mu     sync.Mutex
	queues map[string]*watched
	stop   context.CancelFunc // nil before the first caller waits
	done   chan struct{}
	closed bool
}

// Found is the answer of one look.
type Found struct {
	Ready []string      // queues in which a claim may find work
	Next  time.Duration // longest time until the next look
}

// watched is a queue that callers wait for now, or waited for at the last look.
type watched struct {
	waiting int  // callers
	left    bool // no caller waited at the last look
}

// NewWatch makes a Watch that calls look, and rings wakes for the queues that it finds.
func NewWatch(wakes *Wakes, look func(ctx context.Context, queues []string) (Found, error)) *Watch {
	return &Watch{wakes: wakes, look: look, poked: make(chan struct{}, 1), queues: map[string]*watched{}}
}

// Watch implements Watch of [Features].
func (w *Watch) Watch(queues ...string) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, queue := range queues {
		if w.queues[queue] == nil {
			w.queues[queue] = &watched{}
			w.Poke()
		}
		w.queues[queue].waiting++
		w.queues[queue].left = false
	}
	if w.stop == nil && !w.closed {
		ctx, stop := context.WithCancel(context.Background())
		w.stop, w.done = stop, make(chan struct{})
		go w.run(ctx)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, queue := range queues {
			w.queues[queue].waiting--
		}
	}
}

// Poke tells the goroutine to look soon, because something has happened.
func (w *Watch) Poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// Close ends the goroutine. Waiting callers claim once more, and then learn that the store is
// closed.
func (w *Watch) Close() {
	w.mu.Lock()
	w.closed = true
	stop := w.stop
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-w.done
	}
	w.wakes.RingAll()
}

// names returns the queues to look at. It drops a queue that had no waiting caller at two looks.
func (w *Watch) names() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, q := range w.queues {
		if q.waiting == 0 && q.left {
			delete(w.queues, name)
			continue
		}
		q.left = q.waiting == 0
		names = append(names, name)
	}
	return names
}

// run looks again and again while callers wait.
func (w *Watch) run(ctx context.Context) {
	defer close(w.done)
	pause := pollEvery
	next, soon := time.NewTimer(pause), time.NewTimer(pause) // soon follows a poke
	next.Stop()
	defer next.Stop()
	defer soon.Stop()
	for poked := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.poked:
			if pause = pollEvery; !poked {
				poked = true
				soon.Reset(pause)
			}
			continue
		case <-soon.C:
			poked = false
		case <-next.C:
		}
		if names := w.names(); len(names) > 0 {
			rest := w.lookAt(ctx, names)
			pause = min(2*pause, time.Minute)
			next.Reset(min(pause, rest))
		}
	}
}

// lookAt looks once. If that fails, it wakes all waiting callers: their claims return the error.
func (w *Watch) lookAt(ctx context.Context, names []string) time.Duration {
	found, err := w.look(ctx, names)
	if err != nil {
		found = Found{names, time.Second}
	}
	for _, name := range found.Ready {
		w.wakes.Ring(name)
	}
	return max(found.Next, time.Millisecond)
}
