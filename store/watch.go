package store

import (
	"context"
	"sync"
	"time"
)

// Watch is what a store needs to watch, see [Features]: one goroutine that looks for work of all
// queues together that somebody waits for, where each of them would claim in vain.
//
// After something has happened it looks soon, and then less and less often. It may be
// used concurrently.
type Watch struct {
	wakes *Wakes
	look  func(ctx context.Context, queues []string) (Sight, error)
	poked chan struct{}

	mu     sync.Mutex
	queues map[string]*watched
	stop   context.CancelFunc // nil before the first that waits
	done   chan struct{}
	closed bool
}

// Sight is what a look found.
type Sight struct {
	Ready []string      // queues of which a claim may find something
	Next  time.Duration // until the next look, at most
}

// watched is a queue that somebody waits for, or did at the look before.
type watched struct {
	waiting int
	left    bool // nobody waited for it when it was looked at last
}

// NewWatch makes one that rings wakes for what a look finds.
func NewWatch(wakes *Wakes, look func(ctx context.Context, queues []string) (Sight, error)) *Watch {
	return &Watch{wakes: wakes, look: look, poked: make(chan struct{}, 1), queues: map[string]*watched{}}
}

// Watch is that of [Features].
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

// Poke says that something has happened after which a look may find more.
func (w *Watch) Poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// Close ends the looks. Those who wait claim once more, and hear that the store is closed.
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

// names are the queues to look at. One that nobody has waited for at two looks is no more.
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

// run looks again and again while somebody waits.
func (w *Watch) run(ctx context.Context) {
	defer close(w.done)
	pause := pollEvery
	next, soon := time.NewTimer(pause), time.NewTimer(pause) // soon is for what has happened
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

// lookAt looks once. If that fails, those who wait claim, and meet what is wrong themselves.
func (w *Watch) lookAt(ctx context.Context, names []string) time.Duration {
	sight, err := w.look(ctx, names)
	if err != nil {
		sight = Sight{names, time.Second}
	}
	for _, name := range sight.Ready {
		w.wakes.Ring(name)
	}
	return max(sight.Next, time.Millisecond)
}
