package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
)

// While the listener hears notifications, the watch looks for work once a second, for what was not
// notified; without a listener every 50 ms.
const (
	lookEvery = time.Second
	askEvery  = 50 * time.Millisecond
)

// watchFor is Watch of store.Features.
func (s *Store) watchFor(queues ...string) (stop func()) {
	s.listener.start(s)
	return s.watch.Watch(queues...)
}

// lookFor looks for work of queues by one statement that changes nothing.
func (s *Store) lookFor(ctx context.Context, queues []string) (sight store.Found, err error) {
	if err := s.enter(ctx); err != nil {
		return sight, err
	}
	defer s.gate.leave()
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	rows, err := s.own.Query(ctx, s.named("watch.sql"), queues, s.clockArg(), s.seen.sinceIdle())
	if err != nil {
		return sight, err
	}
	defer rows.Close()
	sight.Next = askEvery
	if s.listener.hears.Load() {
		sight.Next = lookEvery
	}
	for rows.Next() {
		var queue *string // none is for leases that end
		var in int64
		if err := rows.Scan(&queue, &in); err != nil {
			return sight, err
		}
		switch {
		case in > 0:
			sight.Next = min(sight.Next, time.Duration(in))
		case queue == nil:
			sight.Ready = queues // whichever claims first ends the leases
		default:
			sight.Ready = append(sight.Ready, *queue)
		}
	}
	return sight, rows.Err()
}
