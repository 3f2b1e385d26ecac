package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// waiter is a claim that found no message. The transaction that brings work to its queue also runs
// this claim. So an idle worker receives a message at the cost of one commit instead of two.
type waiter struct {
	queue string
	want  nixie.Want
	got   claimed
	done  chan error // answered by the transaction that took the claim
}

// waiters holds the waiting claims of this process by queue, the longest waiting first.
type waiters struct {
	mu      sync.Mutex
	waiting map[string][]*waiter
}

func (all *waiters) add(c *waiter) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.waiting == nil {
		all.waiting = map[string][]*waiter{}
	}
	all.waiting[c.queue] = append(all.waiting[c.queue], c)
}

// remove reports whether the claim still waited. If not, a transaction took it and answers on done.
func (all *waiters) remove(c *waiter) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := all.waiting[c.queue]
	at := slices.Index(list, c)
	if at >= 0 {
		all.waiting[c.queue] = slices.Delete(list, at, at+1)
	}
	return at >= 0
}

// take removes and returns the claim that has waited longest, unless the gate is shut.
func (all *waiters) take(queue string, gate *gate) *waiter {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := all.waiting[queue]
	if len(list) == 0 || !gate.enter() {
		return nil
	}
	c := list[0]
	all.waiting[queue] = slices.Delete(list, 0, 1)
	return c
}

// serveError wraps an error of a waiting claim. It is no error of the calls that brought work.
type serveError struct{ error }

func (e *serveError) Unwrap() error { return e.error }

// serve runs the waiting claims of all queues to which the transaction brought work. It ends with a
// queue when a claim finds less than it wants. The caller answers all claims that serve returns.
func (t *tx) serve() (served []*waiter, err error) {
	for queue := range t.woken {
		for {
			c := t.store.waiters.take(queue, t.store.gate)
			if c == nil {
				break
			}
			served = append(served, c)
			if err := t.claim(&c.got, queue, c.want); err != nil {
				return served, &serveError{err}
			}
			if c.got.count() < c.want.Max {
				break
			}
		}
	}
	return served, nil
}

// await implements Await of store.Features.
func (s *Store) await(ctx context.Context, queue string, want nixie.Want, idle <-chan struct{}) (_ []*nixie.Delivery, err error) {
	if err := store.CheckWant(queue, &want); err != nil {
		return nil, err
	}
	c := &waiter{queue: queue, want: want, done: make(chan error, 1)}
	s.waiters.add(c)
	end := time.NewTimer(want.Wait)
	defer end.Stop()
	rung := false
	select {
	case err := <-c.done:
		return s.served(ctx, c, err)
	case <-ctx.Done():
		err = stopped(ctx)
	case <-end.C:
	case <-idle: // a queue has work, and no transaction served this claim
		rung = true
	}
	switch {
	case !s.waiters.remove(c):
		return s.served(ctx, c, <-c.done)
	case err != nil || !rung:
		return nil, err
	}
	return s.Claim(ctx, queue, want)
}

// served reads the messages that a transaction claimed for a waiter.
func (s *Store) served(ctx context.Context, c *waiter, err error) ([]*nixie.Delivery, error) {
	defer s.gate.leave()
	if err != nil {
		s.owner.progress.forget(&c.got)
		return nil, s.explain(context.Background(), err)
	}
	return s.deliveries(ctx, c.queue, &c.got)
}
