package store

import (
	"context"
	"reflect"
	"sync"
	"time"
)

// lulls remember of which queues the last claim found nothing: a claim of them can only
// find something when a watch has rung since, see [Features].
type lulls struct {
	mu sync.Mutex
	by []lull // queue
}

// lull is one of them: the channels of Wake that were made before the claim, one for
// claims without suspects and one for all.
type lull struct{ fresh, all <-chan struct{} }

// begin notes that a claim found nothing.
func (l *lulls) begin(i int, fresh bool, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[i].fresh = wake; !fresh {
		l.by[i].all = wake
	}
}

// forget lets the next claims find out again.
func (l *lulls) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.by)
}

// of is the channel that ends the lull of a queue, nil if there is none or it has ended.
func (l *lulls) of(i int, fresh bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake := l.by[i].all
	if fresh {
		wake = l.by[i].fresh
	}
	select {
	case <-wake:
		return nil
	default:
		return wake
	}
}

// wait waits until the lull of a queue ends, or for the next poll, and returns an error when
// the time is over.
func (l *lulls) wait(ctx context.Context, end, poll <-chan time.Time, fresh bool) error {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(end)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(poll)},
	}
	for i := range l.by {
		wake := l.of(i, fresh)
		if wake == nil {
			return nil
		}
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(wake)})
	}
	switch chosen, _, _ := reflect.Select(cases); chosen {
	case 0:
		return ctx.Err()
	case 1:
		return errOver
	}
	return nil
}
