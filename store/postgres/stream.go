package postgres

import (
	"cmp"
	"slices"
	"strings"
)

// Of all messages of a stream that have rows only those that may be handed out are in
// the state queued: one, or the head that waits and the one that may pass it. The
// others are behind. Whatever changes a stream holds the lock of its row and stirs it,
// and at the end of the transaction it is arranged once. A stream that has nothing but
// its lane is not stirred: see lane.go.
//
// There are three locks of that row. Who changes what is in a stream takes the one for no
// key update. Who adds to it takes the one for update, and nobody else is at the stream. A
// transaction of a caller may stay open for long: it takes the one for key share, which
// keeps only those away who add, and leaves it to a claim to see what became of that.

// streamKey names a stream of an ordered queue.
type streamKey struct {
	queue int64
	name  string
}

// stir notes that something changed in a stream; one without a name is none.
func (t *tx) stir(queue int64, name string) {
	if name == "" {
		return
	}
	if t.work.stirred == nil {
		t.work.stirred = map[streamKey]bool{}
	}
	t.work.stirred[streamKey{queue, name}] = true
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

// openStreamsOf locks the streams that a query names, and makes those that do not
// exist. One that stays empty goes when it is arranged.
func (t *tx) openStreamsOf(query string, args ...any) {
	t.openStreams(func(own streamKey, s streamRow) {
		t.locked.streams[s.n] = true
		t.stir(own.queue, own.name)
	}, "for update", query, args...)
}

// openStreams does the same by a lock of its caller's choice, and leaves it to that to stir
// them. What it waited for is seen by those statements only that come after.
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

// addBeside locks streams for a transaction of a caller that adds messages of lanes. A second
// one waits here until the first has ended: rows that come and go at once are seen by nobody
// and still are in the way of each other.
func (t *tx) addBeside(each func(streamKey, streamRow), queues []int64, names []string) {
	t.openStreams(each, "for key share", "select * from unnest($1::int[], $2::text[])", queues, names)
	t.run("note_adding.sql", queues, names)
	t.run("forget_adding.sql", queues, names)
}

// arrange decides which messages of the streams that were stirred claims find.
func (t *tx) arrange() {
	if len(t.work.stirred) == 0 {
		return
	}
	t.arranges = true
	queues, names := streamArgs(t.work.stirred)
	t.read(func(r row) error {
		var queue string
		err := r.Scan(&queue)
		t.wake(queue)
		return err
	}, "recompute_heads.sql", queues, names, t.now)
}
