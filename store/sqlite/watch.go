package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
)

const (
	// pollEvery is the pause between two polls. A poll asks whether a process has committed: it
	// reads a number in memory that all processes share.
	pollEvery = 50 * time.Millisecond
	// After lookEvery polls the watch looks for processes that died, which commit nothing.
	lookEvery = 20
)

// watching is the state of the watch. Only the watch uses it.
type watching struct {
	conn    *conn // its data version counts commits of other connections; nil before the first poll
	version int64 // data version when the queues were read last
	next    int64 // when the next message or lease is due, 0 is never
	polls   int   // since the queues were read last, or processes looked at

	queues map[string]bool // that were read last
	found  bool            // work, which may still be there
}

// knows reports whether all queues were read last.
func (w *watching) knows(queues []string) bool {
	for _, queue := range queues {
		if !w.queues[queue] {
			return false
		}
	}
	return true
}

// findWork reads the queues if a process has committed or a message may be due. Many queues that
// nothing happens to cost no more than one. It takes no interrupt, which would cost more than a
// poll.
func (s *Store) findWork(ctx context.Context, queues []string) (sight store.Found, err error) {
	if err := s.enter(ctx); err != nil {
		return sight, err
	}
	defer s.gate.leave()
	w := &s.watching
	if w.conn == nil {
		c, err := openConn(s.path, s.opts.VFS, false, s.opts.LockWait)
		if err != nil {
			return sight, err
		}
		w.conn = &c
	}
	version, err := w.conn.number("pragma data_version")
	if err != nil {
		return sight, err
	}
	w.polls++
	look := w.polls > lookEvery
	switch {
	case version != w.version || isOver(w.next, s.now()) || !w.knows(queues) || look && w.found:
		if sight.Ready, w.next, err = s.readQueues(*w.conn, queues); err != nil {
			return sight, err
		}
		w.version, w.polls, w.found = version, 0, len(sight.Ready) > 0
		w.queues = make(map[string]bool, len(queues))
		for _, queue := range queues {
			w.queues[queue] = true
		}
	case look:
		others, err := s.otherOwners(*w.conn)
		if err != nil {
			return sight, err
		}
		if w.polls = 0; len(s.deadOf(others)) > 0 {
			sight.Ready, w.found = queues, true // the first claim ends the leases
		}
	}
	sight.Next = pollEvery
	if w.next != 0 {
		sight.Next = min(pollEvery, time.Duration(w.next-s.now()))
	}
	return sight, nil
}

// readQueues returns the queues in which a claim would find work, and when the next message or
// lease is due.
func (s *Store) readQueues(c conn, queues []string) (ready []string, next int64, err error) {
	now := s.now()
	others, err := s.otherOwners(c)
	if err != nil {
		return nil, 0, err
	}
	if next, err = s.firstEnd(c); err != nil {
		return nil, 0, err
	}
	if isOver(next, now) || len(s.deadOf(others)) > 0 {
		return queues, 0, nil // whichever claims first ends the leases
	}
	for _, queue := range queues {
		due, _, err := s.firstDue(c, queue)
		switch {
		case err != nil:
			return nil, 0, err
		case isOver(due, now):
			ready = append(ready, queue)
		case next == 0 || due != 0 && due < next:
			next = due
		}
	}
	return ready, next, nil
}

// close closes the connection of the watch, which has ended.
func (w *watching) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.Close()
}
