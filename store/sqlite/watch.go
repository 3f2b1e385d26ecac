package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
)

const (
	// pollEvery is how often the watch asks whether somebody has committed: a number in
	// memory that all processes share.
	pollEvery = 50 * time.Millisecond
	// readEvery is at which of them it looks all the same: a process that died commits
	// nothing.
	readEvery = 20
)

// watching is what the watch knows. It alone uses it.
type watching struct {
	conn    *conn // whose commits of others are counted; nil before the first look
	version int64 // of the file at the last look
	next    int64 // when the next thing is due, 0 is never
	polls   int   // since the last look
}

// findWork looks for work of queues if somebody has committed or something may be due. It is
// not made to be interrupted, which would cost more than a pollEvery.
func (s *Store) findWork(ctx context.Context, queues []string) (sight store.Sight, err error) {
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
	if w.polls++; version != w.version || w.polls > readEvery || isOver(w.next, s.now()) {
		if sight.Ready, w.next, err = s.readQueues(*w.conn, queues); err != nil {
			return sight, err
		}
		w.version, w.polls = version, 0
	}
	sight.Next = pollEvery
	if w.next != 0 {
		sight.Next = min(pollEvery, time.Duration(w.next-s.now()))
	}
	return sight, nil
}

// readQueues looks at what claims of queues would find, and says when the next thing is due.
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
		due, err := s.firstDue(c, queue)
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

// close gives back what the watch has. It has ended.
func (w *watching) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.Close()
}
