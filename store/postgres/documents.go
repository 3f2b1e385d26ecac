package postgres

import (
	"context"
	"encoding/json"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Documents implements engine.Driver. Each way to look has an index.
func (d engineDriver) Documents(ctx context.Context, q store.DocumentQuery, after string, most int) (list []store.Document, err error) {
	err = d.view(ctx, func(t *tx) error {
		t.clock()
		if err := t.send(); err != nil {
			return err
		}
		w := &where{}
		w.add("space = ? and (expires = 0 or expires > ?)", q.Space, t.now)
		order := "key"
		if q.Label != "" {
			w.add("label = ?", q.Label)
		}
		switch {
		case q.Key != "":
			w.add("key = ?", q.Key)
		case q.DueBy.IsZero():
			w.add("key > ?", after)
		}
		if !q.DueBy.IsZero() {
			w.add("due > 0 and due <= ?", lifecycle.Nanos(q.DueBy))
			order = "due, key"
		}
		t.readDocuments(func(d *store.Document) { list = append(list, *d) }, w.String()+" order by "+order+" limit "+w.with("?", most),
			w.args...)
		return t.send()
	})
	return list, err
}

// readDocuments reads documents. The condition may be followed by an order and a lock.
func (t *tx) readDocuments(each func(*store.Document), where string, args ...any) {
	t.read(func(r row) error {
		var d store.Document
		var value string
		var due, expires, until, at int64
		err := r.Scan(&d.Space, &d.Key, &value, &d.Label, &due, &expires, &d.Revision, &d.Owner, &until, &at, &d.By)
		d.Value, d.Due, d.Expires = json.RawMessage(value), lifecycle.Moment(due), lifecycle.Moment(expires)
		d.Until, d.At = lifecycle.Moment(until), lifecycle.Moment(at)
		each(&d)
		return err
	}, fill("read_documents.sql", "where", where), args...)
}

// loadDocuments locks and reads documents, after the queue that a writing opens.
func (v *verb) loadDocuments(w *engine.Want) error {
	if w.Open != "" {
		if err := v.openQueues([]string{w.Open}); err != nil {
			return err
		}
		v.made = nil // it stays, for its audit has an entry
		v.queue(v.named[w.Open])
	}
	v.facts.Documents = map[store.DocumentKey]*store.Document{}
	v.readDocuments(func(d *store.Document) { v.facts.Documents[d.DocumentKey] = d },
		"(space, key) in (select * from unnest($1::text[], $2::text[])) order by space, key for update",
		eachOf(w.Documents, func(k store.DocumentKey) string { return k.Space }),
		eachOf(w.Documents, func(k store.DocumentKey) string { return k.Key }))
	v.clock()
	return v.send()
}

// writeDocuments writes documents and learns their revisions. If another call made one since they
// were locked, that is a race.
func (v *verb) writeDocuments(c *engine.Changes) error {
	if len(c.Documents) == 0 {
		return nil
	}
	var gone, known, fresh []engine.DocumentWrite
	written := map[store.DocumentKey]*store.Document{}
	for _, w := range c.Documents {
		switch {
		case w.Document == nil:
			gone = append(gone, w)
			continue
		case v.facts.Documents[w.DocumentKey] != nil:
			known = append(known, w)
		default:
			fresh = append(fresh, w)
		}
		written[w.DocumentKey] = w.Document
	}
	spaces := func(of []engine.DocumentWrite) []string {
		return eachOf(of, func(w engine.DocumentWrite) string { return w.DocumentKey.Space })
	}
	keys := func(of []engine.DocumentWrite) []string {
		return eachOf(of, func(w engine.DocumentWrite) string { return w.DocumentKey.Key })
	}
	if len(gone) > 0 {
		v.run("delete from @.document where (space, key) in (select * from unnest($1::text[], $2::text[]))", spaces(gone), keys(gone))
	}
	for file, list := range map[string][]engine.DocumentWrite{"update_documents.sql": known, "insert_documents.sql": fresh} {
		if len(list) == 0 {
			continue
		}
		text := func(of func(*store.Document) string) []string {
			return eachOf(list, func(w engine.DocumentWrite) string { return of(w.Document) })
		}
		moment := func(of func(*store.Document) int64) []int64 {
			return eachOf(list, func(w engine.DocumentWrite) int64 { return of(w.Document) })
		}
		v.read(func(r row) error {
			var key store.DocumentKey
			var revision int64
			err := r.Scan(&key.Space, &key.Key, &revision)
			written[key].Revision = revision
			delete(written, key)
			return err
		}, file, spaces(list), keys(list), text(func(d *store.Document) string { return string(d.Value) }),
			text(func(d *store.Document) string { return d.Label }),
			moment(func(d *store.Document) int64 { return lifecycle.Nanos(d.Due) }),
			moment(func(d *store.Document) int64 { return lifecycle.Nanos(d.Expires) }),
			text(func(d *store.Document) string { return d.Owner }),
			moment(func(d *store.Document) int64 { return lifecycle.Nanos(d.Until) }), v.now, plain(list[0].By))
	}
	if err := v.send(); err != nil {
		return err
	}
	if len(written) > 0 {
		return errRaced
	}
	return nil
}
