package postgres

import (
	"cmp"
	"slices"
	"strings"
)

// Of the rows of a stream claims find only those in state queued: one row, or the head that waits
// for a retry and one row that may pass it. All others are behind. A call that changes a stream
// locks its row and marks it dirty; at the end of the transaction the head is recomputed once. A
// stream that has only its ordered path needs no recomputing: see ordered.go.
//
// Three strengths of the lock of that row:
//
//     lock                taken by                         keeps away
//     ------------------  -------------------------------  ----------------------
//     for no key update   calls that change the stream     each other
//     for update          calls that append to the stream  all others
//     for key share       callers' transactions that       calls that append
//                         append, and may stay open long
//
// After the third a claim finds out what the caller's transaction appended.

// streamKey names a stream of an ordered queue.
type streamKey struct {
	queue int64
	name  string
}

// markDirty notes that something changed in a stream; an empty name is no stream.
func (t *tx) markDirty(queue int64, name string) {
	if name == "" {
		return
	}
	if t.work.dirty == nil {
		t.work.dirty = map[streamKey]bool{}
	}
	t.work.dirty[streamKey{queue, name}] = true
}

func streamArgs(set map[streamKey]bool) (queues []int64, names []string) {
	own := make([]streamKey, 0, len(set))
	for key := range set {
		own = append(own, key)
	}
	slices.SortFunc(own, func(a, b streamKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), strings.Compare(a.name, b.name))
	})
	return eachOf(own, func(k streamKey) int64 { return k.queue }), eachOf(own, func(k streamKey) string { return k.name })
}

// openStreamsOf locks the streams that a query names, and makes those that do not exist. A stream
// that stays empty is removed when its head is recomputed.
func (t *tx) openStreamsOf(query string, args ...any) {
	t.openStreams(func(own streamKey, s streamRow) {
		t.locked.streams[s.n] = true
		t.markDirty(own.queue, own.name)
	}, "for update", query, args...)
}

// openStreams is openStreamsOf with another lock, and without marking the streams as dirty. Only
// later statements see what it waited for.
func (t *tx) openStreams(each func(streamKey, streamRow), lock, query string, args ...any) {
	locked := map[int64]bool{}
	t.locked.streams = map[int64]bool{}
	t.run(fill("make_streams.sql", "streams", query), args...)
	t.lock(&locked, fill("lock_streams.sql", "streams", query, "lock", lock), args...)
	t.read(func(r row) error {
		var own streamKey
		var s streamRow
		if err := r.Scan(&s.n, &own.queue, &own.name, &s.mixed, &s.idle); err != nil {
			return err
		}
		if !locked[s.n] {
			return errRaced // it went, or came, meanwhile
		}
		each(own, s)
		return nil
	}, fill("read_streams.sql", "streams", query), args...)
}

// addConcurrently locks streams for a transaction of a caller that appends to ordered paths. A
// second such transaction waits here until the first has ended: both write and remove the same row.
func (t *tx) addConcurrently(each func(streamKey, streamRow), queues []int64, names []string) {
	t.openStreams(each, "for key share", "select * from unnest($1::int[], $2::text[])", queues, names)
	t.run("note_adding.sql", queues, names)
	t.run("forget_adding.sql", queues, names)
}

// recomputeHeads decides which messages of dirty streams claims may find.
func (t *tx) recomputeHeads() {
	if len(t.work.dirty) == 0 {
		return
	}
	t.recomputes = true
	queues, names := streamArgs(t.work.dirty)
	t.read(func(r row) error {
		var queue string
		err := r.Scan(&queue)
		t.wake(queue)
		return err
	}, "recompute_heads.sql", queues, names, t.now)
}
