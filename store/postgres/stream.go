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

// ofStreams is the condition that a stream s is one of those named by the first
// two arguments. The sum keeps PostgreSQL from walking all streams of a queue by the
// index of those that are urgent, where it thinks that there are few.
const ofStreams = `s.n = any(array(select x.n from unnest($1::int[], $2::text[]) u (queue, name)
	cross join lateral (select o.n from @.stream o where o.queue + 0 = u.queue and o.name = u.name limit 1) x))`

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
	}, query, args...)
}

// openStreams does the same and leaves it to the caller to stir them.
func (t *tx) openStreams(each func(streamKey, streamRow), query string, args ...any) {
	t.locked.streams = map[int64]bool{}
	t.read(func(r row) error {
		var own streamKey
		var s streamRow
		err := r.Scan(&s.n, &own.queue, &own.name, &s.mixed, &s.idle)
		each(own, s)
		return err
	}, `insert into @.stream as s (queue, name) select distinct * from (`+query+`) u order by 1, 2 on conflict (queue, name) do update set top = s.top
		returning n, queue, name, mixed, ready = 0 and until = 0`, args...)
}

// arrange decides which messages of the streams that were stirred claims find.
func (t *tx) arrange() {
	if len(t.work.stirred) == 0 {
		return
	}
	queues, names := streamArgs(t.work.stirred)
	t.read(func(r row) error {
		var queue string
		err := r.Scan(&queue)
		t.wake(queue)
		return err
	}, arrangement, queues, names, t.now)
}

// firstOf finds the message of a stream s that goes next if nothing holds it up, and
// whether it is in the lane.
const firstOf = `left join lateral (select * from (
		(select p.pos, p.due, p.rank, false as lane from @.pending p where s.strict and p.stream = s.n order by p.rank limit 1) union all
		(select p.pos, p.due, p.rank, false from @.pending p where not s.strict and p.stream = s.n order by p.due, p.rank limit 1) union all
		(select m.pos, m.enqueued, m.pos, true from @.message m where m.lane = s.n and m.pos > s.at order by m.pos limit 1)) f order by f.rank limit 1) first on true`

// leasedOf finds the message of a stream s that is handed out.
const leasedOf = `left join lateral (select * from ((select p.pos from @.pending p where p.stream = s.n and p.stream is not null and p.state = 1 limit 1) union all
		select s.at where s.until > 0) l limit 1) leased on true`

// isDead is whether a dead message holds up the first one.
const isDead = "exists (select from @.letter l where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank))"

// Rows are found by arrays of their keys, which PostgreSQL does by the index also
// where it knows nothing of a table yet. The first of a lane goes by the row of its
// stream if there is nothing else in that, and gets one of its own if there is.
const arrangement = `with
	s as materialized (select s.n, s.top, s.at, s.until, q.name, q.strict from @.stream s join @.queue q on q.n = s.queue where ` + ofStreams + `),
	v as materialized (
		select s.n, s.name, s.strict, leased.pos as leased, first.pos as first, coalesce(first.lane, false) as lane, coalesce(first.due, 0) as due, ` + isDead + ` as dead,
			exists (select from @.pending p where p.stream = s.n) or exists (select from @.letter l where l.stream = s.n) or coalesce(first.lane and first.pos < s.top, false) as mixed
		from s ` + leasedOf + ` ` + firstOf + `),
	w as materialized (
		select v.n, v.name, v.mixed, v.leased is null and v.dead as blocked,
			case when v.leased is null and not v.dead then v.first end as head,
			v.leased is null and not v.dead and v.lane and v.mixed as enters,
			case when v.leased is null and not v.dead and v.lane and not v.mixed then v.first else 0 end as ready,
			case when v.leased is null then v.due else 0 end as due,
			passer.pos as passer,
			v.first is null and v.leased is null and not exists (select from @.letter l where l.stream = v.n) as empty
		from v left join lateral (select p.pos from @.pending p where v.leased is null and v.strict and (v.dead or v.due > $3::bigint)
			and p.stream = v.n and p.may_pass and (v.dead or p.pos <> v.first) order by p.due, p.rank limit 1) passer on true),
	demoted as (update @.pending p set state = 6 where p.state = 0 and p.pos = any(array(select x.pos from w cross join lateral (
		select r.pos from @.pending r where r.stream = w.n and r.stream is not null and r.state = 0 and r.pos is distinct from w.head and r.pos is distinct from w.passer offset 0) x))),
	promoted as (update @.pending p set state = 0 where p.state = 6 and p.pos = any(array(select head from w where head is not null union all select passer from w where passer is not null))),
	entered as (insert into @.pending (` + laneColumns + `) select 0, ` + laneRow + ` from w cross join lateral (select * from @.message m where m.pos = w.head limit 1) m where w.enters),
	ended as (delete from @.stream s where s.n = any(array(select n from w where empty))),
	noted as (update @.stream s set blocked = w.blocked, due = w.due, mixed = w.mixed, ready = w.ready, at = case when w.enters then w.head else s.at end
		from w where s.n = w.n and s.n = any(array(select n from w where not empty)) and (s.blocked <> w.blocked or s.due <> w.due or s.mixed <> w.mixed or s.ready <> w.ready or w.enters))
	select distinct name from w where passer is not null or head is not null and due <= $3::bigint`
