package store

import (
	"context"
	"reflect"
	"sync"
	"time"
)

// emptyQueues remembers the queues in which the last claim found nothing. The next claim of such a
// queue is useless until Watch of [Features] has closed its channel.
type emptyQueues struct {
	mu sync.Mutex
	by []emptyQueue // for each queue of the source
}

// emptyQueue has the channels of Wake that were made before the last claims that found nothing: one
// for claims without suspects, one for all claims. Nil: the last claim found something.
type emptyQueue struct{ noSuspects, all <-chan struct{} }

// begin notes that a claim found nothing.
func (e *emptyQueues) begin(i int, noSuspects bool, wake <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by[i].noSuspects = wake; !noSuspects {
		e.by[i].all = wake
	}
}

// forget makes the next claims ask the store again.
func (e *emptyQueues) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.by)
}

// of returns the channel that is closed when the queue may have work again, nil if it may have work
// now.
func (e *emptyQueues) of(i int, noSuspects bool) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	wake := e.by[i].all
	if noSuspects {
		wake = e.by[i].noSuspects
	}
	select {
	case <-wake:
		return nil
	default:
		return wake
	}
}

// wait waits until a queue may have work again, or until the next poll. It returns an error when
// the time is over.
func (e *emptyQueues) wait(ctx context.Context, end, poll <-chan time.Time, noSuspects bool) error {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(end)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(poll)},
	}
	for i := range e.by {
		wake := e.of(i, noSuspects)
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
