package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Regroup implements Regroup of store.Features.
func (e *Engine) Regroup(ctx context.Context, r store.Regrouping) []error {
	errs := make([]error, len(r.Letters))
	if err := r.Check(); err != nil || len(errs) == 0 {
		return all(errs, err)
	}
	want, how := &Want{Selected: true}, How{}
	for i := range r.Letters {
		want.Letters = append(want.Letters, r.Letters[i].ID)
	}
	if !r.DryRun {
		how.Letters = len(errs)
	}
	err := e.driver.Update(ctx, how, func(tx Tx) error {
		facts, err := tx.Load(want)
		if err != nil {
			return err
		}
		g := regrouping{call: call{Facts: facts}, by: &r, recorded: map[int64]bool{}}
		for i := range r.Letters {
			errs[i] = g.regroup(&r.Letters[i])
		}
		return tx.Write(&g.changes)
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// regrouping is one call of Regroup.
type regrouping struct {
	call
	by       *store.Regrouping
	recorded map[int64]bool // queues whose audits have an entry
}

// regroup gives one letter another group.
func (g *regrouping) regroup(to *nixie.Letter) error {
	l := g.Letters[to.ID]
	switch {
	case l == nil:
		return nixie.Errorf(nixie.CodeNotFound, "gone")
	case l.Damage != nil:
		return l.Damage
	}
	was := l.Fingerprint
	if err := l.Regroup(to, l.Selected); err != nil || g.by.DryRun {
		return err
	}
	g.touchLetter(l)
	if !l.Operation.IsZero() {
		g.changes.Regrouped = append(g.changes.Regrouped, Regrouped{l, was})
	}
	if g.by.Actor != "" && !g.recorded[l.Queue] {
		g.recorded[l.Queue] = true
		g.record(l.Queue, store.AuditEntry{Actor: g.by.Actor, Event: store.OnRegroup, Reason: g.by.Reason})
	}
	return nil
}
