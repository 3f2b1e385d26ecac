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
)

// Calls with few plain messages, for queues that this process knows, are one round trip: the insert
// itself checks that the queues still are as they are known. Calls that come while such a
// transaction runs share the next one, so that many producers pay for few commits; there is no
// timer. Such a call waits for no lock of a row or a queue, so none holds up the others of its
// group.

// Bounds of one transaction.
const (
	maxGroup     = 1000    // messages
	maxGroupSize = 4 << 20 // bytes of bodies
)

// errNotInGroup says that nothing was written, and that the call has to go on by itself to learn
// why.
var errNotInGroup = errors.New("this call does not go with others")

// groupCall is such a call.
type groupCall struct {
	rows []messageRow
	size int
	done chan error
}

// groupCommit has the calls that wait for the transaction of those before them.
type groupCommit struct {
	mu      sync.Mutex
	waiting []*groupCall
	running bool
}

// enqueueInGroup takes in plain messages if their queues are known.
func (s *Store) enqueueInGroup(ctx context.Context, messages []nixie.Message) ([]nixie.Receipt, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	c := &groupCall{rows: make([]messageRow, len(messages)), done: make(chan error, 1)}
	receipts := make([]nixie.Receipt, len(messages))
	now := s.local()
	for i := range messages {
		m := &messages[i]
		q := s.known.queue(m.Queue)
		if q == nil {
			return nil, errNotInGroup
		}
		receipts[i].ID = s.ids.New(now)
		c.rows[i] = messageRow{id: receipts[i].ID, queue: q.n, byRange: true, hash: nixie.HashBody(m.Body), given: m}
		c.size += len(m.Body)
	}
	var err error
	if s.group.begin(c) {
		err = s.insertKnown(ctx, c)
		s.handOn()
	} else {
		err = s.group.wait(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// begin reports whether the call may go at once, alone. Otherwise it waits.
func (g *groupCommit) begin(c *groupCall) bool {
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

// keep copies what belongs to the caller, which may leave before it is sent.
func (c *groupCall) keep() {
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
func (g *groupCommit) wait(ctx context.Context, c *groupCall) error {
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
	return nixie.Errorf(nixie.CodeOutcomeUnknown, "the caller left while the commit ran: look before you do it again: %w",
		context.Cause(ctx))
}

// handOn starts the calls that waited for the one before them.
func (s *Store) handOn() {
	if group := s.group.take(0); group != nil {
		s.gate.stay()
		go s.serveGroups(group)
	}
}

// serveGroups runs one transaction after the other until no call waits.
func (s *Store) serveGroups(group []*groupCall) {
	defer s.gate.leave()
	for group != nil {
		err := s.insertKnown(context.Background(), group...)
		for _, c := range group {
			c.done <- err
		}
		group = s.group.take(len(group))
	}
}

// take takes out the calls that wait, as many as fit one transaction, nil if there are none.
// Callers that were just answered get the time to call again: otherwise each transaction would
// serve half of the callers.
func (g *groupCommit) take(answered int) (group []*groupCall) {
	g.letCallersReturn(answered)
	g.mu.Lock()
	defer g.mu.Unlock()
	n, messages, size := 0, 0, 0
	for _, c := range g.waiting {
		messages, size = messages+len(c.rows), size+c.size
		if n > 0 && (messages > maxGroup || size > maxGroupSize) {
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

// letCallersReturn yields until the callers that were answered wait again, or no more of them come.
func (g *groupCommit) letCallersReturn(answered int) {
	come := g.size()
	all := come + answered
	for idle := 0; come < all && idle < 3; idle++ {
		runtime.Gosched()
		if n := g.size(); n > come {
			come, idle = n, 0
		}
	}
}

func (g *groupCommit) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// insertKnown writes the messages of calls, all or none, in one round trip.
func (s *Store) insertKnown(ctx context.Context, group ...*groupCall) error {
	var rows []messageRow
	queues := map[string]*queueRow{}
	for _, c := range group {
		rows = append(rows, c.rows...)
		for i := range c.rows {
			name := c.rows[i].given.Queue
			if queues[name] == nil {
				if queues[name] = s.known.queue(name); queues[name] == nil {
					return errNotInGroup
				}
			}
		}
	}
	written := 0
	err := s.once(ctx, s.pool, begin, func(t *tx) error {
		list := slices.Collect(maps.Values(queues))
		numbers := slices.Sorted(slices.Values(eachOf(list, func(q *queueRow) int64 { return q.n })))
		if s.opts.Clock != nil {
			now := s.opts.Clock().UnixNano()
			for i := range rows {
				rows[i].enqueued = now
			}
		}
		t.run("try_queue_locks.sql", numbers)
		args := append(plainArgs(rows), eachOf(list, func(q *queueRow) int64 { return q.n }),
			eachOf(list, func(q *queueRow) string { return q.text }))
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
		return errNotInGroup
	}
	err = s.explain(err)
	if code := nixie.CodeOf(err); len(group) > 1 && code != nixie.CodeUnavailable && code != nixie.CodeOutcomeUnknown {
		return errNotInGroup
	}
	return err
}

// maxKnown bounds how many queues a process remembers.
const maxKnown = 10_000

// known has the queues without order that take messages in, as they were when they were last read.
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
		if q.settings.Ordered() || q.settings.Closed {
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
