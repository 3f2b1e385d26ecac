package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A process that adds due work tells the others by a notification, and each process
// that waits for work has a connection that listens. Both are hints: those who wait
// also ask now and then. A notification is not part of the transaction that adds,
// because transactions that notify commit one after the other in the whole server;
// it follows the commit, alone, and at most one in a while for each queue.
const (
	notifyGap = 3 * time.Millisecond
	aloneGap  = 30 * time.Millisecond // the same while nobody listens
)

// hearers is the lock that all who listen to a schema $1 share: who could have it
// alone tells nobody.
const hearers = "hashtext('nixie listen ' || $1), 0"

// wake is Wake of store.Features. The first call makes this process listen to the
// others.
func (s *Store) wake(queue string) <-chan struct{} {
	s.listener.start(s)
	return s.wakes.Next(queue)
}

// tell wakes those who wait for work that was added to queues, here and elsewhere.
func (s *Store) tell(queues map[string]bool) {
	for queue := range queues {
		s.wakes.Ring(queue)
	}
	s.notify(queues)
}

// notifier sends what others are to be told.
type notifier struct {
	mu      sync.Mutex
	waiting map[string]bool // queues that are to be named in the next notification
	sending bool            // somebody is at it, and takes along what comes meanwhile
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

// sendNotes sends what waits, and rests after it, until nothing waits any more.
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

// take returns what waits; when it is nothing the sender is at its end.
func (n *notifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	queues := slices.Collect(maps.Keys(n.waiting))
	clear(n.waiting)
	n.sending = len(queues) > 0
	return queues
}

// sendNote sends one notification for each queue, and reports whether anybody listens.
// It waits for no disk: a notification that is lost is made up for by who asks. So
// is one that fails.
func (s *Store) sendNote(queues []string) bool {
	ctx, stop := context.WithTimeout(context.Background(), s.opts.AnswerWait)
	defer stop()
	notes := eachOf(queues, func(queue string) string { return s.listener.note(queue) })
	tag, err := s.pool.Exec(ctx, s.named("notify.sql"), s.opts.Schema, notes)
	return err == nil && tag.RowsAffected() > 0
}

// close waits for what is being sent.
func (n *notifier) close() {
	n.mu.Lock()
	n.shut = true
	n.mu.Unlock()
	n.all.Wait()
}
