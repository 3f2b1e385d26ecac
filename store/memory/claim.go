package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Claim hands out due messages in this order:
//
//  1. If a suspect is due and the want is not Fresh, the first suspect, alone.
//  2. Otherwise due messages of the pending side; if the log side has any, at
//     most as many as [share] says.
//  3. Then messages of the log side, by position.
//  4. If there is still room, pending messages again.
//
// Pending messages come by priority, due time and position; suspects are not
// among those of 2 and 4.
func (s *Store) Claim(ctx context.Context, name string, want nixie.Want) ([]*nixie.Delivery, error) {
	want.Max = min(max(want.Max, 1), nixie.MaxBatch)
	if want.Lease != 0 {
		if err := checkLease(want.Lease); err != nil {
			return nil, err
		}
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.sweep(now)
	}
	q := s.queues[name]
	if q == nil || q.settings.Paused {
		return nil, nil
	}
	chosen := q.choose(want, now)
	deliveries := make([]*nixie.Delivery, 0, len(chosen))
	for _, m := range chosen {
		d, err := s.lend(m, now, q.lease(want.Lease))
		if err != nil {
			return deliveries, err
		}
		deliveries = append(deliveries, d)
	}
	return deliveries, nil
}

// sweep ends the leases of the queue that are over or whose owner is gone.
func (q *queue) sweep(now time.Time) {
	q.live = slices.DeleteFunc(q.live, func(m *message) bool { return m.State != nixie.Queued && m.State != nixie.Leased })
	for _, m := range q.live {
		if m.State != nixie.Leased || now.Before(m.LeaseExpiresAt) && !m.holder.gone {
			continue
		}
		m.State = nixie.Queued
		m.Crashes++
		m.abandoned, m.abandonedBy = true, m.LeaseOwner
		m.wait(now)
	}
}

func (q *queue) choose(want nixie.Want, now time.Time) []*message {
	var pending, suspects, log []*message
	for _, m := range q.live {
		switch {
		case m.State != nixie.Queued || m.pending && m.due.After(now):
		case !m.pending:
			log = append(log, m)
		case m.Crashes > 0:
			suspects = append(suspects, m)
		default:
			pending = append(pending, m)
		}
	}
	if len(suspects) > 0 && !want.Fresh {
		return []*message{slices.MinFunc(suspects, byTurn)}
	}
	slices.SortFunc(pending, byTurn)
	first := min(want.Max, len(pending))
	if len(log) > 0 {
		first = min(first, share(want.Max, pending, log[0]))
	}
	chosen := slices.Clone(pending[:first])
	chosen = append(chosen, log[:min(want.Max-first, len(log))]...)
	return append(chosen, pending[first:min(first+want.Max-len(chosen), len(pending))]...)
}

// share is how many of n places the pending side may take before the log side
// has its turn: three quarters, so that neither starves the other. A single
// place cannot be shared: a higher priority gets it, and else who has been due
// for longer.
func share(n int, pending []*message, log *message) int {
	if n > 1 || len(pending) == 0 {
		return n - (n+3)/4
	}
	if p := pending[0]; p.Priority > 0 || p.Priority == 0 && !p.due.After(log.EnqueuedAt) {
		return 1
	}
	return 0
}

func byTurn(a, b *message) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.due.Compare(b.due), cmp.Compare(a.position, b.position))
}

// lend makes a message a delivery. An abandoned one is there to be judged,
// which costs no attempt.
func (s *Store) lend(m *message, now time.Time, lease time.Duration) (*nixie.Delivery, error) {
	if err := m.move(nixie.OnClaim); err != nil {
		return nil, err
	}
	m.number++
	m.Deliveries++
	if !m.abandoned {
		m.Attempts++
	}
	if m.FirstReceivedAt.IsZero() {
		m.FirstReceivedAt = now
	}
	m.holder, m.LeaseOwner, m.LeaseExpiresAt = s, s.owner, now.Add(lease)
	d := &nixie.Delivery{
		Message:     m.show(true),
		Lease:       nixie.Lease{Number: m.number, Owner: s.owner, ExpiresAt: m.LeaseExpiresAt},
		Abandoned:   m.abandoned,
		AbandonedBy: m.abandonedBy,
	}
	d.Loan()
	return d, nil
}

// held finds the message of a delivery whose lease is current.
func (s *Store) held(d *nixie.Delivery, now time.Time) (*message, error) {
	if d == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := s.messages[d.ID]
	if m == nil || m.State != nixie.Leased || m.number != d.Lease.Number || !now.Before(m.LeaseExpiresAt) {
		return nil, nixie.Errorf(nixie.CodeLeaseLost, "lease %d of message %s is over: nothing was changed", d.Lease.Number, d.ID)
	}
	if len(d.Steps) > nixie.MaxSteps {
		return nil, nixie.Errorf(nixie.CodeLimit, "message has %d steps, the limit is %d: use fewer, larger steps", len(d.Steps), nixie.MaxSteps)
	}
	return m, nil
}

// Extend lets leases end after lease from now and saves new steps.
func (s *Store) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	return s.each(ctx, len(deliveries), func(i int, now time.Time) error {
		if err := checkLease(lease); err != nil {
			return err
		}
		m, err := s.held(deliveries[i], now)
		if err != nil {
			return err
		}
		m.LeaseExpiresAt = now.Add(lease)
		m.learn(deliveries[i].Steps)
		return nil
	})
}

// Amend changes messages that have not ended.
func (s *Store) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	return s.each(ctx, len(ids), func(i int, now time.Time) error {
		m := s.messages[ids[i]]
		switch {
		case change != store.Cancel && change != store.RetryNow:
			return nixie.Errorf(nixie.CodeInvalid, "change %q: use %s or %s", change, store.Cancel, store.RetryNow)
		case m == nil:
			return nixie.Errorf(nixie.CodeNotFound, "no message %s", ids[i])
		case change == store.Cancel:
			return s.cancel(m, now)
		}
		return s.retryNow(m, now)
	})
}

func (s *Store) cancel(m *message, now time.Time) error {
	if err := m.move(nixie.OnCancel); err != nil {
		return err
	}
	q := s.queue(m.Queue)
	q.record(now, s.owner, nixie.OnCancel, m.ID, "")
	return s.end(m, nixie.OnGone, s.owner, "message was canceled", now)
}

func (s *Store) retryNow(m *message, now time.Time) error {
	if m.State != nixie.Queued {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: only a queued one can be made due", m.ID, m.State)
	}
	if m.pending && m.due.After(now) {
		m.due, m.NotBefore = now, now
		s.wake(m.Queue)
	}
	return nil
}
