package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// edit gives a redriven message its new expiry, body and headers, and keeps the original ones.
func (q *queue) edit(m *message, r *store.Resolution, now time.Time) {
	if at, what := lifecycle.Prolonged(lifecycle.Nanos(m.ExpiresAt), r, now.UnixNano()); what != "" {
		m.ExpiresAt = lifecycle.Moment(at)
		q.link(store.AuditEntry{At: now, Actor: r.Actor, Event: store.OnAmend, Subject: r.Letter, Reason: what, Operation: r.Operation})
	}
	if r.Edit == nil {
		return
	}
	what := lifecycle.Edited(m.Hash, m.Headers, r.Edit)
	if what == "" {
		return
	}
	if m.letter.Original == nil {
		m.letter.Original = &nixie.Original{Body: m.Body, Headers: m.Headers, Hash: m.Hash, At: now, By: r.Actor}
	}
	m.Body, m.Headers, m.Hash = bytes.Clone(r.Edit.Body), slices.Clone(r.Edit.Headers), nixie.HashBody(r.Edit.Body)
	q.link(store.AuditEntry{At: now, Actor: r.Actor, Event: store.OnAmend, Subject: r.Letter, Reason: what, Operation: r.Operation})
}

// showOriginal copies an original for a caller.
func showOriginal(o *nixie.Original) *nixie.Original {
	if o == nil {
		return nil
	}
	shown := *o
	shown.Body, shown.Headers = bytes.Clone(o.Body), slices.Clone(o.Headers)
	return &shown
}
