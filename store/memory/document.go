package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// documents implements store.Documents.
type documents struct{ *Store }

// Find implements store.Documents.
func (s documents) Find(ctx context.Context, q store.DocumentQuery, page store.Page) (list []store.Document, next string, err error) {
	if err := q.Check(); err != nil {
		return nil, "", err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	for _, d := range s.documents {
		if d.Space != q.Space || q.Key != "" && d.Key != q.Key || q.Label != "" && d.Label != q.Label ||
			!d.Expires.IsZero() && !d.Expires.After(now) {
			continue
		}
		if due := !d.Due.IsZero() && !d.Due.After(q.DueBy); due || q.DueBy.IsZero() && d.Key > page.Cursor {
			list = append(list, shown(d))
		}
	}
	slices.SortFunc(list, func(a, b store.Document) int {
		if !q.DueBy.IsZero() {
			return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.Key, b.Key))
		}
		return strings.Compare(a.Key, b.Key)
	})
	if limit := page.Rows(); len(list) > limit {
		if list = list[:limit]; q.DueBy.IsZero() {
			next = list[limit-1].Key
		}
	}
	return list, next, nil
}

// Write implements store.Documents.
func (s documents) Write(ctx context.Context, w store.Writing) ([]store.Document, error) {
	if _, err := w.Check(); err != nil {
		return nil, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	changed := make([]*store.Document, len(w.Changes))
	for i := range w.Changes {
		c := &w.Changes[i]
		if changed[i], err = lifecycle.Document(s.documents[c.DocumentKey], c, w.Actor, now); err != nil {
			return nil, err
		}
	}
	if err := s.refuse(w.Then); err != nil {
		return nil, err
	}
	list := make([]store.Document, len(w.Changes))
	for i, d := range changed {
		key := w.Changes[i].DocumentKey
		delete(s.documents, key)
		if d != nil {
			s.revision++
			d.Revision, d.Value = s.revision, slices.Clone(d.Value)
			s.documents[key], list[i] = d, shown(d)
		}
		s.wakes.Ring(store.DocumentWake(key.Space))
	}
	if w.Actor != "" {
		s.queue(w.Queue).record(now, w.Actor, store.OnWrite, nixie.ID{}, w.Reason)
	}
	for i := range w.Then {
		s.accept(&w.Then[i], now)
	}
	return list, nil
}

// shown copies a document for a caller.
func shown(d *store.Document) store.Document {
	shown := *d
	shown.Value = slices.Clone(d.Value)
	return shown
}
