package store

import "sync"

// Wakes tells those who wait for work of a queue that some was added: what a store
// needs for Wake of [Features]. The zero value is ready; it may be used concurrently.
type Wakes struct {
	mu    sync.Mutex
	queue map[string]chan struct{}
}

// Next returns a channel that is closed by the next ring for the queue.
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

// Ring wakes those who wait for a queue.
func (w *Wakes) Ring(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.queue[queue]; ch != nil {
		close(ch)
		delete(w.queue, queue)
	}
}

// RingAll wakes everybody who waits.
func (w *Wakes) RingAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for queue, ch := range w.queue {
		close(ch)
		delete(w.queue, queue)
	}
}
