package redrive

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// diedOf returns the groups of those letters whose fingerprints an earlier build made, as this
// build names them. With them a letter that dies of its old cause again has no new failure, only
// because the algorithm is another one.
func (e *Engine) diedOf(ctx context.Context, r *Result, ids []nixie.ID) (map[nixie.ID]string, error) {
	if r.Event != store.OnRedrive {
		return nil, nil
	}
	if r.older == nil {
		groups, _, err := e.c.Store.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}})
		if err != nil {
			return nil, err
		}
		older := slices.ContainsFunc(groups[0], func(g store.Group) bool { return policy.Outdated(g.Key) })
		r.older = &older
	}
	if !*r.older {
		return nil, nil
	}
	var older []nixie.ID
	if err := e.each(ctx, ids, false, func(l *nixie.Letter) {
		if policy.Outdated(l.Fingerprint) {
			older = append(older, l.ID)
		}
	}); err != nil || len(older) == 0 {
		return nil, err
	}
	groups := make(map[nixie.ID]string, len(older))
	return groups, e.each(ctx, older, true, func(l *nixie.Letter) { _, groups[l.ID] = policy.GroupOf(l) })
}

// each calls a function with each of some letters.
func (e *Engine) each(ctx context.Context, ids []nixie.ID, whole bool, call func(*nixie.Letter)) error {
	page := store.Page{Limit: len(ids) + 1, Whole: whole}
	for {
		list, next, err := e.c.Store.Letters(ctx, nixie.Filter{IDs: ids}, page)
		if err != nil {
			return err
		}
		for i := range list {
			call(&list[i])
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}
