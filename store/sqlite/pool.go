package sqlite

import (
	"context"
	"errors"
	"sync"
)

// pool lends connections. The one that came back last goes out first: its cache has the pages that
// were read last, and the caches of rarely used connections stay small.
type pool struct {
	free chan struct{} // one token for each connection in the pool
	mu   sync.Mutex
	in   []conn
}

func newPool(size int) *pool { return &pool{free: make(chan struct{}, size)} }

// take returns a connection. The caller has received from free.
func (p *pool) take() conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.in) - 1
	c := p.in[last]
	p.in = p.in[:last]
	return c
}

func (p *pool) put(c conn) {
	p.mu.Lock()
	p.in = append(p.in, c)
	p.mu.Unlock()
	p.free <- struct{}{}
}

// close waits for each connection and closes it.
func (p *pool) close() (err error) {
	for range cap(p.free) {
		<-p.free
		err = errors.Join(err, p.take().Close())
	}
	return err
}

// view runs f in one snapshot on a connection of the pool, for a call that is inside the gate. It
// interrupts f when ctx ends.
func (s *Store) view(ctx context.Context, p *pool, f func(c conn) error) error {
	select {
	case <-p.free:
	case <-ctx.Done():
		return stopped(ctx)
	}
	c := p.take()
	defer p.put(c)
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	if err := c.run("begin"); err != nil {
		return s.explain(ctx, err)
	}
	err := f(c)
	c.SetInterrupt(nil)
	if end := c.run("commit"); err == nil {
		err = end
	}
	return s.explain(ctx, err)
}
