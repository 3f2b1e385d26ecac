package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A process that adds due work notifies the others, and each process that waits for work has a
// connection that listens. Both are hints: processes that wait also ask now and then. A
// notification is not part of the transaction that adds, because PostgreSQL commits transactions
// that notify one after the other. It follows the commit, at most once in a while for each queue.
const (
	notifyGap = 3 * time.Millisecond
	aloneGap  = 30 * time.Millisecond // the same while no process listens
)

// hearers is the lock that all listeners of a schema $1 share: a process that gets it alone need
// not notify.
const hearers = "hashtext('nixie listen ' || $1), 0"

// wake is Wake of store.Features. The first call makes this process listen to the others.
func (s *Store) wake(queue string) <-chan struct{} {
	s.listener.start(s)
	return s.wakes.Next(queue)
}

// tell wakes those that wait for work of queues, here and in other processes.
func (s *Store) tell(queues map[string]bool) {
	for queue := range queues {
		s.wakes.Ring(queue)
	}
	s.notify(queues)
}

// notifier sends notifications.
type notifier struct {
	mu      sync.Mutex
	waiting map[string]bool // queues that are to be named in the next notification
	sending bool            // a goroutine is sending, and sends what is added meanwhile
	shut    bool
	all     sync.WaitGroup
}

// notify tells other processes that work was added to queues, soon.
func (s *Store) notify(queues map[string]bool) {
	if len(queues) == 0 || s.opts.NoListen {
		return
	}
	n := &s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[string]bool{}
	}
	maps.Copy(n.waiting, queues)
	if n.sending || n.shut {
		return
	}
	n.sending = true
	n.all.Go(func() { s.sendNotes() })
}

// sendNotes sends what waits, with pauses, until nothing waits.
func (s *Store) sendNotes() {
	rest := time.NewTimer(0)
	<-rest.C
	for {
		queues := s.notifier.take()
		if len(queues) == 0 {
			return
		}
		gap := aloneGap
		if s.sendNote(queues) {
			gap = notifyGap
		}
		rest.Reset(gap)
		<-rest.C
	}
}

// take returns what waits; when it returns nothing the sender ends.
func (n *notifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	queues := slices.Collect(maps.Keys(n.waiting))
	clear(n.waiting)
	n.sending = len(queues) > 0
	return queues
}

// sendNote sends one notification for each queue, and reports whether a process listens. It does
// not wait for the disk: processes that ask make up for a notification that is lost or fails.
func (s *Store) sendNote(queues []string) bool {
	ctx, stop := context.WithTimeout(context.Background(), s.opts.AnswerWait)
	defer stop()
	notes := eachOf(queues, func(queue string) string { return s.listener.note(queue) })
	tag, err := s.own.Exec(ctx, s.named("notify.sql"), s.opts.Schema, notes)
	return err == nil && tag.RowsAffected() > 0
}

// close waits for what is being sent.
func (n *notifier) close() {
	n.mu.Lock()
	n.shut = true
	n.mu.Unlock()
	n.all.Wait()
}
