package telemetry

import (
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// maxQueues bounds the label queue. The first queues have labels of their own, and the others share
// the label other.
const maxQueues = 200

// other is the label of values that are in no closed list, and of the queues beyond maxQueues.
const other = "other"

// byQueue keeps what belongs to a queue, so that an event need not make it again.
type byQueue[Q any] struct {
	make func(label string) *Q // is called once for each label, with mu held

	mu      sync.RWMutex
	byLabel map[string]*Q
}

// of returns what belongs to a queue.
func (b *byQueue[Q]) of(name string) *Q {
	b.mu.RLock()
	q := b.byLabel[name] // most names are their labels
	if q == nil {
		name = label(name)
		q, _ = b.find(name)
	}
	b.mu.RUnlock()
	if q != nil {
		return q
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q, name = b.find(name)
	if q == nil {
		if b.byLabel == nil {
			b.byLabel = map[string]*Q{}
		}
		q = b.make(name)
		b.byLabel[name] = q
	}
	return q
}

// find returns the queue of a label, if it is there, and the label that it has or gets. The caller
// holds the mutex.
func (b *byQueue[Q]) find(label string) (*Q, string) {
	if q := b.byLabel[label]; q != nil || len(b.byLabel) < maxQueues {
		return q, label
	}
	return b.byLabel[other], other
}

// label makes a label of a name: Prometheus refuses invalid UTF-8, and drops an empty label.
func label(name string) string {
	if name == "" {
		return other
	}
	return strings.ToValidUTF8(name[:min(len(name), nixie.MaxName)], "\uFFFD")
}

// eachQueue calls do for each range of deliveries that have the same queue. Most slices are one.
func eachQueue(source string, n int, at func(int) *nixie.Delivery, do func(queue string, from, to int)) {
	for from := 0; from < n; {
		queue, to := at(from).Queue, from+1
		for to < n && at(to).Queue == queue {
			to++
		}
		if queue == "" {
			do(source, from, to)
		} else {
			do(queue, from, to)
		}
		from = to
	}
}
