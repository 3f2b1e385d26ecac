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
	}, "for update", query, args...)
}

// openStreams does the same by a lock of its caller's choice, and leaves it to that to stir
// them. What it waited for is seen by those statements only that come after.
func (t *tx) openStreams(each func(streamKey, streamRow), lock, query string, args ...any) {
	locked := map[int64]bool{}
	t.locked.streams = map[int64]bool{}
	t.run("insert into @.stream (queue, name) select distinct * from ("+query+`) u (queue, name) where (select s.n from @.stream s where s.queue + 0 = u.queue and s.name = u.name) is null
		order by 1, 2 on conflict do nothing`, args...)
	t.lock(&locked, "select s.n from @.stream s where s.n = any(array(select x.n from ("+query+`) u (queue, name) cross join lateral (
		select o.n from @.stream o where o.queue + 0 = u.queue and o.name = u.name limit 1) x)) order by queue, name `+lock, args...)
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
	}, "select coalesce(s.n, 0), u.queue, u.name, coalesce(s.mixed, false), coalesce(s.idle, false) from (select distinct * from ("+query+`) u) u (queue, name) left join lateral (
		select s.n, s.mixed, not s.mixed and `+laneEnded+" as idle from @.stream s where s.queue + 0 = u.queue and s.name = u.name limit 1) s on true", args...)
}

// addBeside locks streams for a transaction of a caller that adds messages of lanes. A second
// one waits here until the first has ended: rows that come and go at once are seen by nobody
// and still are in the way of each other.
func (t *tx) addBeside(each func(streamKey, streamRow), queues []int64, names []string) {
	t.openStreams(each, "for key share", "select * from unnest($1::int[], $2::text[])", queues, names)
	t.run("insert into @.adding (stream) select s.n from @.stream s where "+ofStreams+" order by s.n", queues, names)
	t.run("delete from @.adding a using @.stream s where a.stream = s.n and "+ofStreams, queues, names)
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
	}, arrangement, queues, names, t.now)
}

// firstOf finds the message of a stream s that goes next if nothing holds it up, and
// whether it is in the lane.
const firstOf = `left join lateral (select * from (
		(select p.pos, p.due, p.rank, false as lane from @.pending p where s.strict and p.stream = s.n order by p.rank limit 1) union all
		(select p.pos, p.due, p.rank, false from @.pending p where not s.strict and p.stream = s.n order by p.due, p.rank limit 1) union all
		(select f.pos, f.enqueued, f.pos, true from (` + laneFirst + `) f)) f order by f.rank limit 1) first on true`

// leasedOf finds the message of a stream s that is handed out, and whether it is of the lane.
const leasedOf = `left join lateral (select * from ((select p.pos, false as lane from @.pending p where p.stream = s.n and p.stream is not null and p.state = 1 limit 1) union all
		(select f.pos, true from (` + laneFirst + `) f where s.turned and ` + isOut + `)) l limit 1) leased on true`

// isOut is the condition that a message f of the lane of stream s is in a batch.
const isOut = "exists (select from @.batch b where b.queue = s.queue and b.after_tx = '0' and b.after <= f.pos and b.last >= f.pos and f.pos = any(b.places))"

// isDead is whether a dead message holds up the first one.
const isDead = "exists (select from @.letter l where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank))"

// Rows are found by arrays of their keys, which PostgreSQL does by the index also
// where it knows nothing of a table yet. The first of a lane gets a turn
// if there is nothing else in its stream, and a row of its own if there is. While it has
// a turn, which may be out, nothing else goes. Where a strict stream has nothing to go and
// nothing out, whatever is being added beside this gets a turn that is yet to be found.
const arrangement = `with
	s as materialized (select s.n, s.queue, greatest(s.top, (select m.pos from @.message m where m.lane = s.n and m.pos < coalesce(f.pos, 9223372036854775807) order by m.pos desc limit 1)) as top,
			greatest(s.at, f.pos - 1) as at, s.turned and f.pos is not null as turned, f.pos as lane, q.name, q.strict
		from @.stream s join @.queue q on q.n = s.queue left join lateral (` + laneFirst + `) f on true where ` + ofStreams + `),
	v as materialized (
		select s.n, s.queue, s.name, s.strict, s.top, s.at, s.turned, case when s.turned then s.lane else leased.pos end as leased, first.pos as first, coalesce(first.lane, false) as lane, coalesce(first.due, 0) as due, ` + isDead + ` as dead,
			exists (select from @.pending p where p.stream = s.n) or exists (select from @.letter l where l.stream = s.n) or coalesce(first.lane and first.pos < s.top, false) as mixed
		from s left join lateral (select p.pos from @.pending p where p.stream = s.n and p.stream is not null and p.state = 1 limit 1) leased on true ` + firstOf + `),
	w as materialized (
		select v.n, v.queue, v.name, v.mixed, v.top, v.leased is null and v.dead as blocked,
			case when v.leased is null and not v.dead then v.first end as head,
			v.leased is null and not v.dead and v.lane and v.mixed as enters,
			v.leased is null and v.lane and not v.mixed as turns, v.turned or not v.mixed as turned,
			case when v.leased is null and v.mixed then v.due else 0 end as due,
			case when v.leased is null and not v.dead and v.lane and v.mixed then v.first else v.at end as at,
			passer.pos as passer,
			v.strict and v.first is null and v.leased is null as ends,
			not v.strict and v.first is null and v.leased is null and not exists (select from @.letter l where l.stream = v.n) as empty
		from v left join lateral (select p.pos from @.pending p where v.leased is null and v.strict and (v.dead or v.due > $3::bigint)
			and p.stream = v.n and p.may_pass and (v.dead or p.pos <> v.first) order by p.due, p.rank limit 1) passer on true),
	demoted as (update @.pending p set state = 6 where p.state = 0 and p.pos = any(array(select x.pos from w cross join lateral (
		select r.pos from @.pending r where r.stream = w.n and r.stream is not null and r.state = 0 and r.pos is distinct from w.head and r.pos is distinct from w.passer offset 0) x))),
	promoted as (update @.pending p set state = 0 where p.state = 6 and p.pos = any(array(select head from w where head is not null union all select passer from w where passer is not null))),
	entered as (insert into @.pending (` + laneColumns + `) select 0, ` + laneRow + ` from w cross join lateral (select * from @.message m where m.pos = w.head limit 1) m where w.enters),
	ended as (delete from @.stream s where s.n = any(array(select n from w where empty))),
	turns as (insert into @.turn (queue, streams, places) select queue, array_agg(n), array_agg(case when ends then -1 - top else head end) from w where turns or ends group by queue),
	noted as (update @.stream s set blocked = w.blocked, due = w.due, mixed = w.mixed, turned = w.turned, at = w.at, top = w.top
		from w where s.n = w.n and s.n = any(array(select n from w where not empty)) and (s.blocked, s.due, s.mixed, s.turned, s.at, s.top) is distinct from (w.blocked, w.due, w.mixed, w.turned, w.at, w.top))
	select distinct name from w where passer is not null or head is not null and due <= $3::bigint`
