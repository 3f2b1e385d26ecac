package broker

import (
	"container/heap"
	"time"
)

// fifo is a queue of items.
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

// waiting are items by the time they are due: a heap.
type waiting []*item

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(a, b int) bool { return w[a].trouble.due.Before(w[b].trouble.due) }
func (w waiting) Swap(a, b int)      { w[a], w[b] = w[b], w[a] }

// Push and Pop are for package heap.
func (w *waiting) Push(x any) { *w = append(*w, x.(*item)) }

// Pop removes the last one.
func (w *waiting) Pop() any {
	n := len(*w) - 1
	i := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	return i
}

// add lets an item wait.
func (w *waiting) add(i *item, due time.Time) {
	if i.trouble == nil {
		i.trouble = &trouble{}
	}
	i.trouble.due = due
	heap.Push(w, i)
}

// due removes an item whose time has come; nil if there is none.
func (w *waiting) dueBy(now time.Time) *item {
	if len(*w) == 0 || now.Before((*w)[0].trouble.due) {
		return nil
	}
	return heap.Pop(w).(*item)
}
