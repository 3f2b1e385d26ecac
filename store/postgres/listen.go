package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/nixie-go/nixie"
)

const (
	// A listener that has heard nothing for so long asks over its own connection whether that is
	// alive, and takes another one when there is no answer.
	probeEvery    = 5 * time.Second
	probePatience = 5 * time.Second

	stillThere = "select 'listens'"

	goodbye         = 100 * time.Millisecond
	firstListenRest = 100 * time.Millisecond // before a listener connects again
	maxListenRest   = 5 * time.Second
)

// listener hears notifications of other processes. Its silence reveals a connection that is dead
// without an error.
type listener struct {
	self            string // this process, among those that notify
	every, patience time.Duration

	hears atomic.Bool // what others tell

	once sync.Once
	stop context.CancelFunc
	done chan struct{} // closed when it has ended
}

func newListener() listener {
	return listener{self: rand.Text(), every: probeEvery, patience: probePatience}
}

// note returns the text of a notification: its sender, and the queue; a probe has none.
func (l *listener) note(queue string) string { return l.self + " " + queue }

// start begins to listen, the first time.
func (l *listener) start(s *Store) {
	l.once.Do(func() {
		if s.opts.NoListen {
			return
		}
		if s.pooled {
			s.warn(nixie.Errorf(nixie.CodeUnavailable,
				"store %s is behind a pooler: work that other processes add is found by asking, some 50 ms later than by notification; "+
					"nixie_listen=off in the URL, or NoListen of Options, says that this is meant", s.address))
			return
		}
		ctx, stop := context.WithCancel(context.Background())
		l.stop, l.done = stop, make(chan struct{})
		go l.run(ctx, s)
	})
}

// close ends the listener, or keeps it from starting.
func (l *listener) close() {
	l.once.Do(func() {})
	if l.stop != nil {
		l.stop()
		<-l.done
	}
}

// run listens, again and again.
func (l *listener) run(ctx context.Context, s *Store) {
	defer close(l.done)
	rest, before, told := firstListenRest, false, false
	for ctx.Err() == nil {
		heard := l.listen(ctx, s, before)
		if heard {
			rest, before = firstListenRest, true
		}
		if ctx.Err() == nil && (heard || !told) {
			s.warn(nixie.Errorf(nixie.CodeUnavailable,
				"store %s: the connection that listens for work of other processes is lost: the store is asked every %s until there is "+
					"another one",
				s.address, askEvery))
			told = true
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		rest = min(2*rest, maxListenRest)
	}
}

// listen listens on one connection until it fails, and reports whether it has heard anything on it.
// If an earlier connection was lost, it rings all queues, because notifications may have been
// missed.
func (l *listener) listen(ctx context.Context, s *Store, before bool) (heard bool) {
	c, err := l.connect(ctx, s)
	if err != nil {
		return false
	}
	defer l.leave(ctx, c)
	defer l.lose(s)
	for l.probe(ctx, s, c, !heard) == nil {
		if before && !heard {
			s.wakes.RingAll()
		}
		heard = true
		l.hears.Store(true)
		for err = nil; err == nil; {
			wait, stop := context.WithTimeout(ctx, l.every)
			var note *pgconn.Notification
			if note, err = c.WaitForNotification(wait); err == nil {
				l.hear(s, note)
			}
			stop()
		}
		if ctx.Err() != nil || c.IsClosed() {
			break
		}
	}
	return heard
}

// connect opens the connection of the listener.
func (l *listener) connect(ctx context.Context, s *Store) (*pgx.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, connectPatience)
	defer stop()
	c, err := s.connection(ctx, "nixie listen "+s.opts.Schema)
	if err != nil {
		return nil, err
	}
	if _, err = c.Exec(ctx, "listen "+pgx.Identifier{s.opts.Schema}.Sanitize()); err == nil {
		_, err = c.Exec(ctx, "select pg_advisory_lock_shared("+hearers+")", s.opts.Schema)
	}
	if err != nil {
		l.leave(ctx, c)
	}
	return c, err
}

// leave closes a connection, whose other end may be gone.
func (l *listener) leave(ctx context.Context, c *pgx.Conn) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	_ = c.Close(ctx)
}

// lose makes the watch ask more often, because no connection listens.
func (l *listener) lose(s *Store) {
	l.hears.Store(false)
	s.watch.Poke()
}

// probe checks that the connection is alive. The first probe sends a notification to itself and
// waits for it. That costs the server a transaction ID, so later probes only ask for an answer.
func (l *listener) probe(ctx context.Context, s *Store, c *pgx.Conn, first bool) error {
	ctx, stop := context.WithTimeout(ctx, l.patience)
	defer stop()
	if !first {
		_, err := c.Exec(ctx, stillThere)
		return err
	}
	if _, err := c.Exec(ctx, "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", s.opts.Schema,
		l.note("")); err != nil {
		return err
	}
	for {
		note, err := c.WaitForNotification(ctx)
		if err != nil || l.hear(s, note) {
			return err
		}
	}
}

// hear wakes those that wait for a queue to which another process added. It reports whether the
// notification was our own probe.
func (l *listener) hear(s *Store, note *pgconn.Notification) (probe bool) {
	from, queue, _ := strings.Cut(note.Payload, " ")
	if from != l.self {
		s.wakes.Ring(queue)
		s.watch.Poke() // it may be due a little later
	}
	return from == l.self && queue == ""
}
