package memory

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// regroup implements Regroup of store.Features.
func (s *Store) regroup(ctx context.Context, r store.Regrouping) []error {
	if err := r.Check(); err != nil {
		return slices.Repeat([]error{err}, len(r.Letters))
	}
	recorded := map[*queue]bool{}
	return s.each(ctx, len(r.Letters), func(i int, now time.Time) error {
		l := s.letters[r.Letters[i].ID]
		if l == nil {
			return nixie.Errorf(nixie.CodeNotFound, "gone")
		}
		if err := s.regroupOne(l, &r.Letters[i], r.DryRun); err != nil || r.DryRun {
			return err
		}
		if q := s.queue(l.message.Queue); r.Actor != "" && !recorded[q] {
			recorded[q] = true
			q.record(now, r.Actor, store.OnRegroup, nixie.ID{}, r.Reason)
		}
		return nil
	})
}

func (s *Store) regroupOne(l *letter, to *nixie.Letter, dry bool) error {
	selected := slices.ContainsFunc(s.planned, func(op *operation) bool {
		it := op.items[l.ID]
		return it != nil && it.state == lifecycle.ItemPending
	})
	was := l.Fingerprint
	if dry {
		return (&lifecycle.Letter{Status: l.Status, Revision: l.Revision}).Regroup(to, selected)
	}
	if err := l.decide(func(d *lifecycle.Letter) error { return d.Regroup(to, selected) }); err != nil {
		return err
	}
	if op := s.operations[l.Operation]; op != nil && op.items[l.ID] != nil && op.items[l.ID].fingerprint == was {
		op.items[l.ID].fingerprint = to.Fingerprint
	}
	return nil
}
