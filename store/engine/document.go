package engine

import (
	"context"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// documents implements store.Documents.
type documents struct{ *Engine }

// Documents returns the documents of the store.
func (e *Engine) Documents() store.Documents { return documents{e} }

// Find implements store.Documents.
func (e documents) Find(ctx context.Context, query store.DocumentQuery, page store.Page) ([]store.Document, string, error) {
	if err := query.Check(); err != nil {
		return nil, "", err
	}
	list, err := e.driver.Documents(ctx, query, page.Cursor, page.Rows()+1)
	if err != nil || len(list) <= page.Rows() {
		return list, "", err
	}
	list, next := list[:page.Rows()], ""
	if query.DueBy.IsZero() {
		next = list[len(list)-1].Key
	}
	return list, next, nil
}

// Write implements store.Documents.
func (e documents) Write(ctx context.Context, w store.Writing) ([]store.Document, error) {
	size, err := w.Check()
	if err != nil {
		return nil, err
	}
	want := &Want{Open: w.Queue}
	for i := range w.Changes {
		want.Documents = append(want.Documents, w.Changes[i].DocumentKey)
	}
	var list []store.Document
	err = e.driver.Update(ctx, How{Bytes: size}, func(tx Tx) error {
		facts, err := tx.Load(want)
		if err != nil {
			return err
		}
		list = make([]store.Document, len(w.Changes))
		c := call{Facts: facts}
		for i := range w.Changes {
			by := &w.Changes[i]
			next, err := lifecycle.Document(facts.Documents[by.DocumentKey], by, w.Actor, lifecycle.Moment(facts.Now))
			if err != nil {
				return err
			}
			c.changes.Documents = append(c.changes.Documents, DocumentWrite{by.DocumentKey, next})
			c.changes.Wakes = append(c.changes.Wakes, store.DocumentWake(by.Space))
		}
		if q := facts.Queues[w.Queue]; q != nil {
			c.record(q.Number, store.AuditEntry{Actor: w.Actor, Event: store.OnWrite, Reason: w.Reason})
		}
		if err := tx.Write(&c.changes); err != nil {
			return err
		}
		for i, d := range c.changes.Documents {
			if d.Document != nil {
				list[i] = *d.Document
			}
		}
		if len(w.Then) == 0 {
			return nil
		}
		_, err = enqueue(tx, w.Then, hashesOf(w.Then))
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
