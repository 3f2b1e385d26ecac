package postgres

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Calls with few plain messages, for queues that this process knows, are one round
// trip: the insert looks itself whether the queues still are as they are known. Calls
// that come while such a transaction runs share the next one, so that many producers
// pay for few commits; there is no timer. Such a call waits for no lock of a row or a
// queue, so none holds up those that go with it.

// Bounds of one transaction.
const (
	maxTogether     = 1000    // messages
	maxTogetherSize = 4 << 20 // bytes of bodies
)

// errAlone says that nothing was written, and that a call has to find out by itself
// why.
var errAlone = errors.New("this call does not go with others")

// few is such a call.
type few struct {
	rows []messageRow
	size int
	done chan error
}

// together are the calls that wait for those before them.
type together struct {
	mu      sync.Mutex
	waiting []*few
	running bool
}

// enqueueFew takes in messages that are plain, if their queues are known.
func (s *Store) enqueueFew(ctx context.Context, messages []nixie.Message) ([]nixie.Receipt, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	c := &few{rows: make([]messageRow, len(messages)), done: make(chan error, 1)}
	receipts := make([]nixie.Receipt, len(messages))
	now := s.local()
	for i := range messages {
		m := &messages[i]
		q := s.known.queue(m.Queue)
		if q == nil {
			return nil, errAlone
		}
		receipts[i].ID = s.ids.New(now)
		c.rows[i] = messageRow{id: receipts[i].ID, queue: q.n, given: m}
		c.size += len(m.Body)
	}
	var err error
	if s.together.begin(c) {
		err = s.insertKnown(ctx, c)
		s.handOn()
	} else {
		err = s.together.wait(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// begin reports whether the call may go at once, alone. Otherwise it waits.
func (g *together) begin(c *few) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.running {
		g.running = true
		return true
	}
	c.keep()
	g.waiting = append(g.waiting, c)
	return false
}

// keep copies what is the caller's, who may leave before it is sent.
func (c *few) keep() {
	for i := range c.rows {
		m := *c.rows[i].given
		m.Body, m.Headers = bytes.Clone(m.Body), slices.Clone(m.Headers)
		if m.Origin != nil {
			origin := *m.Origin
			origin.Key = bytes.Clone(origin.Key)
			m.Origin = &origin
		}
		c.rows[i].given = &m
	}
}

// wait waits for the answer to a call.
func (g *together) wait(ctx context.Context, c *few) error {
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
	}
	g.mu.Lock()
	at := slices.Index(g.waiting, c)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	g.mu.Unlock()
	if at >= 0 {
		return nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
	}
	select {
	case err := <-c.done: // just in time
		return err
	default:
	}
	return nixie.Errorf(nixie.CodeOutcomeUnknown, "the caller left while the commit ran: look before you do it again: %w", context.Cause(ctx))
}

// handOn lets those go who waited for the call before them.
func (s *Store) handOn() {
	if group := s.together.take(0); group != nil {
		s.gate.stay()
		go s.serveTogether(group)
	}
}

// serveTogether runs one transaction after the other until nobody waits.
func (s *Store) serveTogether(group []*few) {
	defer s.gate.leave()
	for group != nil {
		err := s.insertKnown(context.Background(), group...)
		for _, c := range group {
			c.done <- err
		}
		group = s.together.take(len(group))
	}
}

// take takes out those who wait, as many as may go together, nil if there are none.
// Who was answered before gets a turn to come again: otherwise each transaction would
// serve half of the callers.
func (g *together) take(answered int) (group []*few) {
	g.letThemCome(answered)
	g.mu.Lock()
	defer g.mu.Unlock()
	n, messages, size := 0, 0, 0
	for _, c := range g.waiting {
		messages, size = messages+len(c.rows), size+c.size
		if n > 0 && (messages > maxTogether || size > maxTogetherSize) {
			break
		}
		n++
	}
	group = slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.running = n > 0
	if n == 0 {
		return nil
	}
	return group
}

func (g *together) letThemCome(answered int) {
	come := g.size()
	all := come + answered
	for idle := 0; come < all && idle < 3; idle++ {
		runtime.Gosched()
		if n := g.size(); n > come {
			come, idle = n, 0
		}
	}
}

func (g *together) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// insertKnown writes the messages of calls, all or none, in one round trip.
func (s *Store) insertKnown(ctx context.Context, group ...*few) error {
	var rows []messageRow
	queues := map[string]*queueRow{}
	for _, c := range group {
		rows = append(rows, c.rows...)
		for i := range c.rows {
			name := c.rows[i].given.Queue
			if queues[name] == nil {
				if queues[name] = s.known.queue(name); queues[name] == nil {
					return errAlone
				}
			}
		}
	}
	written := 0
	err := s.once(ctx, "begin", func(t *tx) error {
		list := slices.Collect(maps.Values(queues))
		numbers := slices.Sorted(slices.Values(eachOf(list, func(q *queueRow) int64 { return q.n })))
		if s.opts.Clock != nil {
			now := s.opts.Clock().UnixNano()
			for i := range rows {
				rows[i].enqueued = now
			}
		}
		t.run("try_queue_locks.sql", numbers)
		args := append(plainArgs(rows), eachOf(list, func(q *queueRow) int64 { return q.n }), eachOf(list, func(q *queueRow) string { return q.text }))
		t.read(func(row) error { written++; return nil }, "insert_known.sql", args...)
		for name := range queues {
			t.wake(name)
		}
		return nil
	})
	switch {
	case err == nil && written == len(rows):
		return nil
	case err == nil || isRace(err):
		s.known.forget(queues)
		return errAlone
	}
	err = s.explain(err)
	if code := nixie.CodeOf(err); len(group) > 1 && code != nixie.CodeUnavailable && code != nixie.CodeOutcomeUnknown {
		return errAlone
	}
	return err
}

// maxKnown bounds how many queues a process remembers.
const maxKnown = 10_000

// known are the queues without order that take messages in, as they were when they
// were last read.
type known struct {
	mu     sync.RWMutex
	queues map[string]*queueRow
}

func (k *known) queue(name string) *queueRow {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.queues[name]
}

func (k *known) learn(queues map[string]*queueRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queues == nil || len(k.queues) > maxKnown {
		k.queues = map[string]*queueRow{}
	}
	for name, q := range queues {
		if q.settings.Ordered() || lifecycle.Admits(&q.settings, name) != nil {
			delete(k.queues, name)
		} else {
			k.queues[name] = q
		}
	}
}

func (k *known) forget(queues map[string]*queueRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range queues {
		delete(k.queues, name)
	}
}
