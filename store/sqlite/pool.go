package sqlite

import (
	"context"
	"errors"
	"sync"
)

// pool lends connections, which it opens when they are needed: each of them reads the whole schema,
// and most commands need one. The connection that came back last goes out first: its cache has the
// pages that were read last, and the caches of rarely used connections stay small.
type pool struct {
	open func() (conn, error)
	free chan struct{} // one token for each connection that may be taken
	mu   sync.Mutex
	in   []conn
}

func newPool(size int, open func() (conn, error)) *pool {
	p := &pool{open: open, free: make(chan struct{}, size)}
	for range size {
		p.free <- struct{}{}
	}
	return p
}

// take returns a connection. The caller has received from free.
func (p *pool) take() (conn, error) {
	if c, ok := p.last(); ok {
		return c, nil
	}
	c, err := p.open()
	if err != nil {
		p.free <- struct{}{}
	}
	return c, err
}

// last returns the connection that came back last, if one is there.
func (p *pool) last() (c conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.in) - 1
	if last < 0 {
		return conn{}, false
	}
	c = p.in[last]
	p.in = p.in[:last]
	return c, true
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
	}
	for c, ok := p.last(); ok; c, ok = p.last() {
		err = errors.Join(err, c.Close())
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
	c, err := p.take()
	if err != nil {
		return err
	}
	defer p.put(c)
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	if err := c.run("begin"); err != nil {
		return s.explain(ctx, err)
	}
	err = f(c)
	c.SetInterrupt(nil)
	if end := c.run("commit"); err == nil {
		err = end
	}
	return s.explain(ctx, err)
}
