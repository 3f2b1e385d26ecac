package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// join puts a message at the end of its stream, if its queue is ordered.
func (s *Store) join(q *queue, m *message) {
	m.ordered, m.rank = q.settings.Ordered() && m.Stream != "", s.nextRank()
}

// nextRank returns a rank behind all others.
func (s *Store) nextRank() int64 {
	s.position++
	return s.position
}

// stream returns the queued and leased messages of a stream, and the dead ones whose letters are
// unresolved, both in order.
func (q *queue) stream(name string) (going, dead []*message) {
	for _, m := range q.all {
		switch {
		case !m.ordered || m.Stream != name:
		case m.State == nixie.Queued || m.State == nixie.Leased:
			going = append(going, m)
		case m.State == nixie.Dead && m.letter.Status.Unresolved():
			dead = append(dead, m)
		}
	}
	slices.SortFunc(going, byRank)
	slices.SortFunc(dead, byRank)
	return going, dead
}

func byRank(a, b *message) int { return cmp.Compare(a.rank, b.rank) }
func byDue(a, b *message) int  { return cmp.Or(a.due.Compare(b.due), byRank(a, b)) }

// next returns the message of a stream that may be delivered now, or nil, and the dead message that
// blocks the stream.
func (q *queue) next(name string, now time.Time) (next, blocker *message) {
	going, dead := q.stream(name)
	for _, m := range dead {
		if m.letter.blocks && (len(going) == 0 || m.rank < going[0].rank) {
			blocker = m
			break
		}
	}
	if len(going) == 0 {
		return nil, blocker
	}
	first := q.foremost(going)
	leased := slices.ContainsFunc(going, func(m *message) bool { return m.State == nixie.Leased })
	head, passing := lifecycle.Goes(q.settings.Order == nixie.OrderStrict, leased, blocker != nil, lifecycle.Nanos(first.due),
		lifecycle.Nanos(now))
	going = slices.DeleteFunc(going, func(m *message) bool {
		return m.due.After(now) || !(head && m == first) && !(passing && m.MayPass)
	})
	if len(going) == 0 {
		return nil, blocker
	}
	return slices.MinFunc(going, byDue), blocker
}

// foremost returns the message that is first by the order of the queue.
func (q *queue) foremost(going []*message) *message {
	if q.settings.Order == nixie.OrderStrict {
		return going[0]
	}
	return slices.MinFunc(going, byDue)
}

// pass notes that a message of a stream is delivered, and marks it if that is out of order.
func (q *queue) pass(m *message) {
	if !m.ordered {
		return
	}
	going, dead := q.stream(m.Stream)
	for _, other := range append(going, dead...) {
		m.OrderGap = m.OrderGap || other != m && other.rank < m.rank
	}
	m.OrderGap = m.OrderGap || m.rank < q.top[m.Stream]
	q.top[m.Stream] = max(q.top[m.Stream], m.rank)
	m.MayPass = false
}

// Streams lists the streams of a queue: blocked ones first, then those whose head waits longest.
func (s *Store) Streams(ctx context.Context, query store.StreamQuery, page store.Page) ([]store.Stream, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	q := s.queues[query.Queue]
	if q == nil {
		return nil, "", nil
	}
	seen := map[string]bool{}
	var all []store.Stream
	for _, m := range q.all {
		if !m.ordered || seen[m.Stream] || query.Name != "" && query.Name != m.Stream {
			continue
		}
		seen[m.Stream] = true
		if v := q.view(m.Stream, now); v.State != "" {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b store.Stream) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), b.Due.Compare(a.Due), strings.Compare(a.Name, b.Name))
	})
	return cutStreams(all, page)
}

func urgency(v store.Stream) int {
	if v.State == store.StreamBlocked {
		return 0
	}
	return 1
}

// cutStreams cuts a page out of streams. A cursor is the name of the last stream of the page
// before.
func cutStreams(all []store.Stream, page store.Page) ([]store.Stream, string, error) {
	if page.Cursor != "" {
		i := slices.IndexFunc(all, func(v store.Stream) bool { return v.Name == page.Cursor })
		if i < 0 {
			return nil, "", store.BadCursor(page.Cursor)
		}
		all = all[i+1:]
	}
	if limit := page.Rows(); len(all) > limit {
		return all[:limit], all[limit-1].Name, nil
	}
	return all, "", nil
}

// view describes a stream. Its state is empty if the stream has no messages and letters.
func (q *queue) view(name string, now time.Time) store.Stream {
	v := store.Stream{Queue: q.name, Name: name}
	going, dead := q.stream(name)
	if len(going)+len(dead) == 0 {
		return v
	}
	_, blocker := q.next(name, now)
	v.Followers, v.Dead = int64(len(going)), int64(len(dead))
	for _, m := range going {
		if m.MayPass {
			v.Passing++
		}
	}
	head := q.head(going, blocker)
	switch {
	case head == nil:
		v.State = store.StreamIdle
		return v
	case head == blocker:
		v.State, v.Letter = store.StreamBlocked, blocker.letter.ID
		v.Dead--
	case head.State == nixie.Leased:
		v.State, v.LeasedBy = store.StreamLeased, head.LeaseOwner
	case head.due.After(now):
		v.State, v.Due = store.StreamWaiting, head.due
	default:
		v.State = store.StreamReady
	}
	if head != blocker {
		v.Followers--
	}
	v.Head, v.Attempts, v.Failure = head.ID, head.Attempts, head.LastFailure
	return v
}

// head returns the message that is leased, that blocks the stream, or that is delivered next.
func (q *queue) head(going []*message, blocker *message) *message {
	if i := slices.IndexFunc(going, func(m *message) bool { return m.State == nixie.Leased }); i >= 0 {
		return going[i]
	}
	switch {
	case blocker != nil:
		return blocker
	case len(going) == 0:
		return nil
	}
	return q.foremost(going)
}

// Unblock lets the followers of a stream go on.
func (s *Store) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	if err := u.Check(); err != nil {
		return 0, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q := s.queues[u.Queue]
	if q == nil || q.view(u.Stream, now).State == "" {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	going, dead := q.stream(u.Stream)
	_, blocker := q.next(u.Stream, now)
	head := q.head(going, blocker)
	n := int64(0)
	if u.Mark && q.settings.Order == nixie.OrderStrict {
		for _, m := range going {
			if m != head && m.State == nixie.Queued && !m.MayPass {
				m.MayPass = true
				n++
			}
		}
	}
	for _, m := range dead {
		if !u.Mark && m.letter.blocks {
			m.letter.blocks = false
			n++
		}
	}
	if n == 0 {
		return 0, u.Nothing()
	}
	q.record(now, u.Actor, store.OnUnblock, head.ID, u.Note())
	s.wakes.Ring(q.name)
	return n, nil
}

// reorder applies a new order to the messages of the queue. While messages are queued or leased,
// the order cannot begin or end, because their positions in a stream would be unknown.
func (q *queue) reorder(settings nixie.QueueSettings) error {
	if settings.Ordered() != q.settings.Ordered() {
		for _, m := range q.live {
			if m.State == nixie.Queued || m.State == nixie.Leased {
				return store.Busy(q.name)
			}
		}
		for _, m := range q.all {
			m.ordered = false
		}
	}
	if !settings.Blocks() {
		for _, m := range q.all {
			if m.letter != nil {
				m.letter.blocks = false
			}
		}
	}
	return nil
}
