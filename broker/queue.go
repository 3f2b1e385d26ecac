package broker

import (
	"container/heap"
	"time"
)

// fifo is a first-in, first-out queue of items.
type fifo struct {
	items []*item
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(i *item) {
	if q.head > 0 && q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	q.items = append(q.items, i)
}

func (q *fifo) pop() *item {
	i := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	return i
}

// delayQueue is a heap of items, the one that is due first on top.
type delayQueue []*item

func (w delayQueue) Len() int           { return len(w) }
func (w delayQueue) Less(a, b int) bool { return w[a].retry.due.Before(w[b].retry.due) }
func (w delayQueue) Swap(a, b int)      { w[a], w[b] = w[b], w[a] }

// Push implements [heap.Interface].
func (w *delayQueue) Push(x any) { *w = append(*w, x.(*item)) }

// Pop implements [heap.Interface].
func (w *delayQueue) Pop() any {
	n := len(*w) - 1
	i := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	return i
}

// add makes an item wait until it is due.
func (w *delayQueue) add(i *item, due time.Time) {
	if i.retry == nil {
		i.retry = &retryState{}
	}
	i.retry.due = due
	heap.Push(w, i)
}

// dueBy removes an item that is due and returns it, or nil.
func (w *delayQueue) dueBy(now time.Time) *item {
	if len(*w) == 0 || now.Before((*w)[0].retry.due) {
		return nil
	}
	return heap.Pop(w).(*item)
}
