package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Resolve applies resolutions, each whole or not at all.
func (s *Store) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	if err := store.CheckResolutions(resolutions); err != nil {
		return slices.Repeat([]error{err}, len(resolutions))
	}
	return s.each(ctx, len(resolutions), func(i int, now time.Time) error {
		return s.resolve(&resolutions[i], now)
	})
}

func (s *Store) resolve(r *store.Resolution, now time.Time) error {
	if err := r.Check(); err != nil {
		return err
	}
	l := s.letters[r.Letter]
	if l == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no letter %s", r.Letter)
	}
	op, item, err := s.item(r)
	if err != nil {
		return err
	}
	planned := int64(0)
	if op != nil && op.Guarded {
		planned = item.revision
	}
	if err = s.allow(l, r, planned, now); err == nil {
		err = s.apply(l, r, now)
	}
	if item != nil {
		item.fingerprint = cmp.Or(r.Group, item.fingerprint)
		if item.state, item.at = lifecycle.ItemOf(r, err), now; item.state == lifecycle.ItemUnobserved {
			item.state = cmp.Or(item.early, item.state)
		}
	}
	return err
}

// allow returns an error if a resolution cannot be applied.
func (s *Store) allow(l *letter, r *store.Resolution, planned int64, now time.Time) error {
	m, q := l.message, s.queue(l.message.Queue)
	taken := ""
	if lifecycle.NeedsKey(r.Event, q.settings.DedupeScope) && q.free(m) != nil {
		taken = m.DedupeKey
	}
	at := ""
	if m.Origin != nil {
		at = m.Origin.BodyAt
	}
	return lifecycle.Refuse(lifecycle.Facts{
		ID: l.ID, Status: l.Status, Dead: m.State == nixie.Dead, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview, Redrives: m.Redrives,
		Notes: len(l.Notes), Revision: l.Revision, Planned: planned, TakenKey: taken, BodyAt: at,
		Cause: l.Cause, Expired: lifecycle.Past(lifecycle.Nanos(m.ExpiresAt), now.UnixNano()),
	}, r)
}

// apply applies a resolution that allow has allowed.
func (s *Store) apply(l *letter, r *store.Resolution, now time.Time) error {
	m := l.message
	q := s.queue(m.Queue)
	if r.Event == store.OnPurge {
		s.removeLetter(now, l, r.Operation)
		q.purged++
		q.resolved(now, r)
		return nil
	}
	was := l.Letter
	if err := l.decide(func(dl *lifecycle.Letter) error {
		return m.decide(func(dm *lifecycle.Message) error {
			appends, err := dl.Resolve(dm, r, q.settings.Ordered() && m.Stream != "", now.UnixNano())
			if appends {
				dm.Rank = s.nextRank()
			}
			return err
		})
	}); err != nil {
		return err
	}
	if r.Event == store.OnConfirm && was.Status == nixie.StatusRedriving {
		s.ends(now, l.ID, lifecycle.Ending{Operation: was.Operation, On: lifecycle.Overtaken(r)})
	}
	switch r.Event {
	case store.OnNote:
		l.Notes = append(l.Notes, nixie.Note{At: now, By: r.Actor, Text: r.Reason})
	case store.OnRedrive:
		if m.keyless = !lifecycle.NeedsKey(r.Event, q.settings.DedupeScope); !m.keyless {
			q.take(m)
		}
		if !slices.Contains(q.live, m) { // the last sweep may not have removed it
			q.live = append(q.live, m)
		}
		s.wakes.Ring(q.name)
		q.edit(m, r, now)
	case store.OnDiscard, store.OnConfirm:
		q.release(m, true)
	case store.OnRestore:
		if lifecycle.KeepsDead(q.settings.DedupeScope) {
			q.take(m)
		}
	}
	q.resolved(now, r)
	return nil
}
