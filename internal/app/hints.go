package app

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Hints calls yield with names of one kind in the store that a URL names, see [sqlite.Hints]: there
// in a file; in other stores it reads what lists read, and gives up when ctx ends.
func Hints(ctx context.Context, rawURL, kind string, yield func(name, meaning string)) error {
	if rest, isFile, err := splitURL(rawURL); err == nil && isFile {
		path, err := filePath(rest)
		if err != nil {
			return err
		}
		return sqlite.Hints(ctx, path, kind, yield)
	}
	var found [][2]string
	done := make(chan error, 1)
	go func() { // a server that does not answer is waited for in its own time
		st, err := OpenStore(rawURL, Options{MustExist: true})
		if err == nil {
			found, err = hintsOf(ctx, st, kind)
			_ = st.Close()
		}
		done <- err
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-done:
		for _, hint := range found {
			yield(hint[0], hint[1])
		}
		return err
	}
}

// hintsOf lists names of one kind, the newest first, each with what it means.
func hintsOf(ctx context.Context, st store.Store, kind string) ([][2]string, error) {
	page := store.Page{Limit: 200}
	switch kind {
	case "queue":
		list, err := st.Queues(ctx, store.QueueQuery{Settings: true})
		return each(list, func(q *store.QueueInfo) [2]string { return [2]string{q.Name} }), err
	case "id":
		list, _, err := st.Letters(ctx, nixie.Filter{}, page)
		return each(list, func(l *nixie.Letter) [2]string { return [2]string{l.ID.String(), l.Signature} }), err
	case "operation":
		list, _, err := st.Operations(ctx, store.OperationQuery{}, page)
		return each(list, func(o *store.Operation) [2]string { return [2]string{o.ID.String(), string(o.Event) + ": " + o.Reason} }), err
	case "fingerprint", "type":
		lists, _, err := st.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.GroupBy(kind)}, Described: true})
		return each(slices.Concat(lists...), func(g *store.Group) [2]string { return [2]string{g.Key, g.Label} }), err
	}
	list, _, err := st.Messages(ctx, nixie.Filter{}, page)
	return each(list, func(r *store.Record) [2]string {
		return [2]string{map[string]string{"message": r.ID.String(), "key": r.Key, "stream": r.Stream}[kind]}
	}), err
}

// each returns the hints of a list that have a name.
func each[T any](list []T, hint func(*T) [2]string) (found [][2]string) {
	for i := range list {
		if h := hint(&list[i]); h[0] != "" {
			found = append(found, h)
		}
	}
	return found
}
