package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Enqueue accepts all messages or, with an error, none.
func (s *Store) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if _, err := store.CheckMessages(messages); err != nil {
		return nil, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := s.refuse(messages); err != nil {
		return nil, err
	}
	receipts := make([]nixie.Receipt, len(messages))
	for i := range messages {
		receipts[i] = s.accept(&messages[i], now)
	}
	return receipts, nil
}

// refuse returns the error of a call that fails, before anything is changed: a closed queue, a
// dedupe key that another message holds, also one of the same call, or an ID that exists.
func (s *Store) refuse(messages []nixie.Message) error {
	type name struct{ queue, key string }
	keys := map[name]nixie.ID{}
	ids := map[nixie.ID]bool{}
	for i := range messages {
		m := &messages[i]
		if q := s.queues[m.Queue]; q != nil && q.settings.Closed {
			return lifecycle.Admits(&q.settings, q.name)
		}
		if m.DedupeKey != "" {
			own := name{m.Queue, m.DedupeKey}
			holder := s.holder(m)
			first, again := keys[own]
			switch {
			case holder != nil && !settles(m.OnConflict, holder):
				return &nixie.DuplicateError{Key: m.DedupeKey, Existing: holder.ID}
			case again && m.OnConflict == nixie.FailOnConflict:
				return &nixie.DuplicateError{Key: m.DedupeKey, Existing: first}
			case holder != nil || again:
				continue
			}
			keys[own] = m.ID
		}
		if m.ID.IsZero() {
			continue
		}
		if ids[m.ID] || s.messages[m.ID] != nil {
			return nixie.Errorf(nixie.CodeConflict, "message %s exists already: leave the ID out or use a new one", m.ID)
		}
		ids[m.ID] = true
	}
	return nil
}

func (s *Store) holder(m *nixie.Message) *message {
	if q := s.queues[m.Queue]; q != nil && m.DedupeKey != "" {
		return q.keys[m.DedupeKey]
	}
	return nil
}

// accept adds one message, or answers with the holder of its dedupe key.
func (s *Store) accept(given *nixie.Message, now time.Time) nixie.Receipt {
	hash := nixie.HashBody(given.Body)
	if holder := s.holder(given); holder != nil {
		different := holder.Hash != hash
		if given.OnConflict == nixie.ReplaceExisting {
			s.queue(holder.Queue).record(now, lifecycle.System, store.OnAmend, holder.ID, store.Replaced(holder.Hash))
			holder.replace(given, hash)
		}
		return nixie.Receipt{ID: holder.ID, Duplicate: true, Different: different}
	}
	q := s.queue(given.Queue)
	s.position++
	m := &message{Message: *given, position: s.position, born: s.position}
	m.Message = m.show(true)
	if m.ID.IsZero() {
		m.ID = s.ids.New(now)
	}
	m.fresh(hash, now)
	q.take(m)
	s.join(q, m)
	s.messages[m.ID] = m
	q.all, q.live = append(q.all, m), append(q.live, m)
	if !m.due.After(now) {
		s.wakes.Ring(q.name)
	}
	return nixie.Receipt{ID: m.ID}
}

// replace takes over body, headers, type and key of a newer message with the same dedupe key.
func (m *message) replace(given *nixie.Message, hash nixie.Hash) {
	m.Body, m.Hash, m.Headers, m.Type = bytes.Clone(given.Body), hash, slices.Clone(given.Headers), given.Type
	if given.Key != "" {
		m.Key = given.Key
	}
}

// fresh sets all fields that the store decides.
func (m *message) fresh(hash nixie.Hash, now time.Time) {
	m.due = now
	if m.Delay > 0 {
		m.due = now.Add(m.Delay)
	}
	if m.NotBefore.After(m.due) {
		m.due = m.NotBefore
	}
	if m.NotBefore = m.due; !m.due.After(now) {
		m.NotBefore = time.Time{}
	}
	m.Hash, m.State, m.EnqueuedAt, m.Generation = hash, nixie.Queued, now, 1
	m.Attempts, m.Deliveries, m.Crashes, m.Redrives, m.Steps, m.Patience = 0, 0, 0, 0, nil, nixie.Patience{}
	m.MayPass, m.OrderGap = false, false
	m.FirstReceivedAt, m.EndedAt, m.LastFailure, m.LastReason = time.Time{}, time.Time{}, "", ""
	m.LeaseOwner, m.LeasedAt, m.LeaseExpiresAt = "", time.Time{}, time.Time{}
	m.OnConflict, m.Delay = 0, 0
}

// settles reports whether a key that is taken gives a receipt and not an error.
func settles(c nixie.Conflict, holder *message) bool {
	switch c {
	case nixie.ReturnExisting:
		return true
	case nixie.ReplaceExisting:
		return holder.State == nixie.Queued && holder.Deliveries == 0
	}
	return false
}
