package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Claim hands out abandoned messages, or else a group of suspects if the want allows it, or else
// due messages by due rank and position. Of an ordered stream it sees only the next message.
func (s *Store) Claim(ctx context.Context, name string, want nixie.Want) ([]*nixie.Delivery, error) {
	if err := store.CheckWant(name, &want); err != nil {
		return nil, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, q := range s.queues {
		if err := s.sweep(q, now); err != nil {
			return nil, err
		}
	}
	q := s.queues[name]
	if q == nil || q.settings.Paused {
		return nil, nil
	}
	if now.Sub(q.asked) >= store.AskedEvery {
		q.asked = now
	}
	chosen := q.choose(want, now)
	deliveries := make([]*nixie.Delivery, 0, len(chosen))
	for _, m := range chosen {
		if m.abandoned == "" {
			m.alone = m.Crashes > 0 && lease.AloneTwice(want.Parallel, m.Crashes)
		}
		d, err := s.deliver(m, now, cmp.Or(want.Lease, q.settings.LeaseOrDefault()))
		if err != nil {
			return deliveries, err
		}
		if want.LogProgress {
			m.progress = lease.Waiting
		}
		deliveries = append(deliveries, d)
	}
	return deliveries, nil
}

// sweep ends the leases of the queue that are over or whose owner is gone, by the progress that the
// holder logged.
func (s *Store) sweep(q *queue, now time.Time) error {
	q.live = slices.DeleteFunc(q.live, func(m *message) bool { return m.State != nixie.Queued && m.State != nixie.Leased })
	for _, m := range q.live {
		if m.State != nixie.Leased || now.Before(m.LeaseExpiresAt) && !m.holder.gone {
			continue
		}
		if err := s.vanish(m, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) vanish(m *message, now time.Time) error {
	switch m.progress {
	case lease.Succeeded:
		if err := m.end(store.OnComplete, now); err != nil {
			return err
		}
		return s.follow(m, lifecycle.Success(), now)
	case lease.Waiting:
		released := nixie.Settlement{Verb: nixie.Release}
		if err := m.decide(func(l *lifecycle.Message) error {
			return l.Settle(&released, &s.queue(m.Queue).settings, m.Steps, now.UnixNano())
		}); err != nil {
			return err
		}
		s.again(m, now)
		return nil
	}
	by, told := cmp.Or(m.LeaseOwner, "unknown"), m.holder.told
	return m.decide(func(l *lifecycle.Message) error { return l.Abandon(by, told, now.UnixNano()) })
}

// LogProgress implements [lease.ProgressLog].
func (s *Store) LogProgress(progress lease.Progress, deliveries ...*nixie.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		if progress == lease.Succeeded && len(lease.NewSteps(d)) > 0 {
			return nixie.Errorf(nixie.CodeInvalid, "message %s has new steps: settle it", d.ID)
		}
	}
	for _, d := range deliveries {
		if m := s.messages[d.ID]; m != nil && m.State == nixie.Leased && m.number == d.Lease.Number && m.holder == s {
			m.progress = progress
		}
	}
	return nil
}

func (q *queue) choose(want nixie.Want, now time.Time) []*message {
	var due, judged, suspects []*message
	suspectLeased := false
	for _, m := range q.live {
		if m.State != nixie.Queued || m.due.After(now) {
			suspectLeased = suspectLeased || m.State == nixie.Leased && m.Crashes > 0
			continue
		}
		if m.ordered {
			if next, _ := q.next(m.Stream, now); next != m {
				continue
			}
		}
		switch {
		case m.abandoned != "":
			judged = append(judged, m)
		case m.Crashes > 0:
			suspects = append(suspects, m)
		default:
			due = append(due, m)
		}
	}
	switch {
	case len(judged) > 0:
		return q.first(judged, nixie.MaxBatch)
	case len(suspects) > 0 && !want.NoSuspects:
		return q.group(suspects, want)
	case len(suspects) > 0 && !suspectLeased:
		return nil // the suspects wait for a worker that has nothing in hand
	}
	return q.first(due, want.Max)
}

// group returns the suspects with the fewest crashes, as many as may run together.
func (q *queue) group(suspects []*message, want nixie.Want) []*message {
	fewest := slices.MinFunc(suspects, func(a, b *message) int { return cmp.Compare(a.Crashes, b.Crashes) }).Crashes
	suspects = slices.DeleteFunc(suspects, func(m *message) bool { return m.Crashes > fewest })
	return q.first(suspects, min(want.Max, lease.GroupSize(want.Parallel, fewest)))
}

// first returns the first messages by due rank, as many as one call can carry.
func (q *queue) first(of []*message, most int) []*message {
	slices.SortFunc(of, q.byDueRank)
	size, n := 0, 0
	for n < min(most, len(of)) && size+len(of[n].Body) <= nixie.MaxBatchBytes {
		size += len(of[n].Body)
		n++
	}
	return of[:n]
}

func (q *queue) byDueRank(a, b *message) int {
	return cmp.Or(cmp.Compare(q.dueRank(a), q.dueRank(b)), cmp.Compare(a.position, b.position))
}

func (q *queue) dueRank(m *message) int64 { return q.settings.DueRank(m.due.UnixNano(), m.Priority) }

// deliver leases a message. The claim of an abandoned message is for judging, and counts no
// attempt.
func (s *Store) deliver(m *message, now time.Time, length time.Duration) (*nixie.Delivery, error) {
	q := s.queue(m.Queue)
	q.pass(m)
	until := now.Add(length)
	if err := m.decide(func(l *lifecycle.Message) error { return l.Claim(0, until.UnixNano(), now.UnixNano()) }); err != nil {
		return nil, err
	}
	q.claimed(m)
	m.progress = 0
	m.holder, m.LeaseOwner = s, s.owner
	d := &nixie.Delivery{
		Message:     m.show(true),
		Lease:       nixie.Lease{Number: m.number, Owner: s.owner, ExpiresAt: m.LeaseExpiresAt},
		Abandoned:   m.abandoned != "",
		AbandonedBy: m.abandoned,

		AbandonedAlone: m.abandoned != "" && m.alone,
	}
	if m.Redrives > 0 && m.letter != nil {
		d.Operation, d.FirstFailedAt = m.letter.Operation, m.letter.FirstFailedAt
	}
	d.LastFailure = "" // listings alone have it
	lease.Ready(d)
	return d, nil
}

// held returns the message of a delivery whose lease is current, and all its steps.
func (s *Store) held(d *nixie.Delivery, now time.Time) (*message, []string, error) {
	if d == nil {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := s.messages[d.ID]
	if m == nil || m.State != nixie.Leased || m.number != d.Lease.Number || !now.Before(m.LeaseExpiresAt) {
		return nil, nil, lifecycle.Lost(d)
	}
	steps, err := lifecycle.Learn(m.Steps, d)
	return m, steps, err
}

// Extend makes leases end after lease from now, and saves new steps.
func (s *Store) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	return s.each(ctx, len(deliveries), func(i int, now time.Time) error {
		if err := store.CheckLease(lease); err != nil {
			return err
		}
		m, steps, err := s.held(deliveries[i], now)
		if err != nil {
			return err
		}
		m.LeaseExpiresAt, m.Steps = now.Add(lease), steps
		return nil
	})
}
