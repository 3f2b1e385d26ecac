package store

import "sync"

// Wakes tells waiting callers that a queue has new work. A store makes Wake of [Features] with it.
// The zero value is ready. It is safe for concurrent use.
type Wakes struct {
	mu    sync.Mutex
	queue map[string]chan struct{}
}

// Next returns a channel that the next Ring for the queue closes.
func (w *Wakes) Next(queue string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.queue[queue]
	if ch == nil {
		ch = make(chan struct{})
		if w.queue == nil {
			w.queue = map[string]chan struct{}{}
		}
		w.queue[queue] = ch
	}
	return ch
}

// Ring wakes the callers that wait for a queue.
func (w *Wakes) Ring(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.queue[queue]; ch != nil {
		close(ch)
		delete(w.queue, queue)
	}
}

// RingAll wakes all waiting callers.
func (w *Wakes) RingAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for queue, ch := range w.queue {
		close(ch)
		delete(w.queue, queue)
	}
}
