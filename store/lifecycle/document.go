package lifecycle

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Document returns what becomes of a document by a change, without its new revision; nil: it is
// removed. Have is the document before, nil if there is none; one that has expired counts as none.
func Document(have *store.Document, c *store.DocumentChange, by string, now time.Time) (*store.Document, error) {
	next := store.Document{DocumentKey: c.DocumentKey}
	if have != nil && (have.Expires.IsZero() || have.Expires.After(now)) {
		next = *have
	}
	switch {
	case c.If != store.AnyRevision && c.If != next.Revision:
		return nil, nixie.Errorf(nixie.CodeConflict, "document %s is at revision %d and not at %d: read it again", c.DocumentKey,
			next.Revision, c.If)
	case c.Verb != store.PutDocument && next.Revision == 0:
		return nil, nixie.Errorf(nixie.CodeNotFound, "no document %s", c.DocumentKey)
	}
	switch c.Verb {
	case store.RemoveDocument:
		return nil, nil
	case store.TakeDocument:
		if next.Owner != "" && next.Owner != c.Owner && next.Until.After(now) {
			return nil, nixie.Errorf(nixie.CodeConflict, "document %s is held by %s until %s: wait for that", c.DocumentKey, next.Owner,
				next.Until.UTC().Format(time.RFC3339))
		}
		if next.Owner, next.Until = c.Owner, now.Add(c.Lease); c.Lease == 0 {
			next.Owner, next.Until = "", time.Time{}
		}
	case store.PutDocument:
		next.Value, next.Label, next.Due, next.Expires = c.Value, c.Label, moment(c.Due), moment(c.Expires)
	}
	next.At, next.By = now, by
	return &next, nil
}

// moment returns a moment as stores keep it.
func moment(at time.Time) time.Time { return Moment(Nanos(at)) }
