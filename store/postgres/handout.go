package postgres

// The statements that hand out messages lock what they take and pass by what others
// hold. What vanished with a holder has statements of its own. Of each priority the first are looked at, and of those
// and of the next plain ones the first by turn are taken, as many as one call may
// carry.

// handouts are those statements, for the schema of a store.
type handouts struct{ loose, lanes, ordered, suspects string }

func (s *Store) makeHandouts() handouts {
	return handouts{s.named(claimLoose()), s.named(claimLanes()), s.named(claimOrdered()), s.named(claimSuspects())}
}

// isVoid is the condition that leases have to be ended first, at the time c.now: those
// that end after c.since, see looks.
const isVoid = `(exists (select from @.pending where until > c.since and until <= c.now and until > 0) or exists (select from @.batch where until > c.since and until <= c.now)
	or exists (select from @.owner o where ` + deadOwner + `))`

// carried are the columns of a message m that a delivery carries, and apart those of
// its row p.
const (
	carried = `m.pos, m.id, m.type, m.priority, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.dedupe, m.headers, m.origin`
	apart   = `p.due, p.place, p.attempts, p.deliveries, p.crashes, p.generation, p.redrives, p.number, p.until, p.received, p.claimed, p.abandoned, p.steps, coalesce(p.stream, 0), p.rank, p.gap, p.reason, p.alone`
)

// firstsAt finds and locks what is due now of each priority, in no stream.
func firstsAt(now string) string {
	return `(select c.pos, c.due - pr.priority * $4::bigint as turn, c.place, c.row from generate_series(-4, 4) as pr (priority) cross join lateral (
		select p.pos, p.due, p.place, p.ctid as row from @.pending p where p.queue = $1 and p.state = 0 and p.crashes = 0 and p.priority = pr.priority::smallint and p.due <= ` + now + ` and p.stream is null
		order by p.due, p.place limit $3 for update skip locked) c offset 0)`
}

// leases is what a claim does to rows p of pending.
func leases(now, until string) string {
	return `update @.pending p set state = 1, owner = $5, until = ` + until + `, claimed = ` + now + `, number = p.number + 1, deliveries = p.deliveries + 1,
		attempts = p.attempts + (p.abandoned is null)::int, received = case p.received when 0 then ` + now + ` else p.received end`
}

// notAlone is what a claim of others than suspects does to rows beside.
const notAlone = `, alone = false`

// claimLoose claims messages of queue $1 without order: at most $3, with $10 bytes, for
// owner $5 and $6 nanoseconds, in batches from number $9 + 1 on. $4 is what a priority
// is worth. It does nothing unless the settings are still
// $8 and no lease has to be ended first, or $11, they were swept; $12
// is for isVoid, and $7 a number of moves that the cursor has made at least. A claim of plain messages does not wait for
// the disk: if the server forgets it, they are handed out again.
func claimLoose() string {
	return `with recursive
	clock as materialized (select now, ` + sinceOf("$12") + ` as since from (select coalesce($2::bigint, ` + databaseClock + `) as now offset 0) x),
	fit as materialized (select c.now from clock c where exists (select from @.owner where n = $5 and not gone) and ($11 or not ` + isVoid + `)
		and exists (select from @.queue q where q.n = $1 and q.settings = $8::jsonb and not q.paused)),
	due as materialized (select f.* from fit cross join lateral ` + firstsAt("fit.now") + ` f),` +
		stretches + `,
	-- Without rows of their own that are due, and if it is not too much, all that was found goes.
	whole as materialized (select *, case when not mixed then set_config('synchronous_commit', 'off', true) end as commits
		from (select taken, size > $10 or exists (select from due) as mixed from total) x),
	-- Rows are remembered by where they lie: these are locked, and messages do not change.
	chosen as materialized (select row, message, ord from (select row, message, ord, sum(size) over (order by turn, place, ord) as size, row_number() over (order by turn, place, ord) as nth from (
			select d.row, m.row as message, d.turn, d.place, 0 as ord, m.size from due d
				cross join lateral (select m.ctid as row, octet_length(m.body) as size from @.message m where m.pos = d.pos limit 1) m
			union all select null, null, turn, place, ord, size from fresh) x order by turn, place, ord limit $3) y
		where (size <= $10 or nth = 1) and (select mixed from whole)),
	share as materialized (select case when mixed then (select coalesce(max(ord), 0) from chosen) else taken end as n from whole),
	` + leasing + ` ` + leases("fit.now", "fit.now + $6") + notAlone + ` from fit, chosen c cross join lateral (select * from @.message m where m.ctid = c.message offset 0) m where c.ord = 0 and p.ctid = c.row returning ` + carried + `, ` + apart
}

// pieces reads what claimLoose leased by range: the batches whose numbers are $1 + 1 to
// $2; and members reads their messages, of one after the other. What is sorted are the
// batches, before their messages are found: a sort of these by their batches would shuffle
// those of each.
const (
	pieces  = `select n, claimed, until, members from @.batch where n between $1::bigint + 1 and $2 order by n`
	members = `select m.tx, m.pos, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers, m.origin
		from (select * from @.batch where n between $1::bigint + 1 and $2 order by n) b cross join lateral (select * from @.message m
			where m.queue = b.queue and not m.apart and (m.tx, m.pos) > (b.after_tx, b.after) order by m.tx, m.pos limit b.members) m`
)

// anyRows is the condition that queue $1 has rows that are not handed out and not
// behind others.
const anyRows = `(exists (select from @.pending where queue = $1 and state = 0 and crashes > 0) or exists (select from @.pending where queue = $1 and state = 0 and crashes = 0 and stream is null)
	or exists (select from @.pending where queue = $1 and state = 0 and crashes = 0 and stream is not null))`

// claimLanes takes turns of queue $1, whose cursor is locked and has moved $9 times at least: the first $3 of all that may go, but for those
// that are others' (see others). They become a batch with the number $8.
// Their bodies have at most $10 bytes. It reads all turns that were given since the cursor, and finds those that are yet to be found;
// those for which there was no room then are kept in ready. What it read and took is removed
// at once, and the cursor says where to look the next time: behind everything, but for the
// transactions that have not ended. It answers also with streams that have to be arranged,
// with the places that their turns said. $2 is now, $4 what a priority is worth, $5 the owner, $6 the nanoseconds of the lease.
// The lease begins at $7, or when the statement does: $2 was before the cursor was waited for.
func claimLanes() string {
	return `with at as materialized (select c.moves, c.tx, c.late, c.low, s.s, pg_snapshot_xmax(s.s) as top, coalesce($7::bigint, ` + databaseClock + `) as now
		from (select * from @.cursor where queue = $1 and moves >= $9 order by moves desc limit 1) c, (select pg_current_snapshot() as s offset 0) s where ` + notPaused + `),
	others as materialized (select due - priority * $4::bigint as turn, place from (
			select x.* from generate_series(-4, 4) as pr (priority) cross join lateral (
				(select p.due, p.priority, p.place from @.pending p where p.queue = $1 and p.state = 0 and p.crashes = 0 and p.priority = pr.priority::smallint and p.due <= $2 and p.stream is null order by p.due, p.place limit $3)
				union all (select p.due, p.priority, p.place` + inStreams + ` and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint order by p.due, p.place limit $3)) x) o where ` + anyRows + `),
	given as materialized (
		select t.ctid as row, t.streams, t.places from @.turn t where t.queue = $1 and t.tx >= (select tx from at)
		union all select t.* from at cross join lateral unnest(at.late) l (tx) cross join lateral (select t.ctid, t.streams, t.places from @.turn t where t.queue = $1 and t.tx = l.tx and l.tx < at.tx offset 0) t),
	told as materialized (select u.stream, u.pos from given g cross join lateral unnest(g.streams, g.places) u (stream, pos)),
	found as materialized (select h.*, f.* from (select distinct stream, -pos as least from told where pos < 0) h cross join lateral @.found(h.stream, h.least) f),
	lane as materialized (
		select null::tid as row, u.stream, u.pos, m.enqueued as due, m.message, m.size
			from (select * from told where pos > 0 union all select distinct stream, pos from found f where pos is not null and not exists (select from told o where o.pos = f.pos)) u
			cross join lateral (select m.enqueued, m.ctid as message, octet_length(m.body) as size from @.message m where m.pos = u.pos and m.lane = u.stream limit 1) m
		union all select r.*, m.message, m.size from (select r.ctid, r.stream, r.pos, r.due from @.ready r where r.queue = $1 and r.due >= (select low from at) order by r.due, r.pos limit $3 + 1) r
			cross join lateral (select m.ctid as message, octet_length(m.body) as size from @.message m where m.pos = r.pos limit 1) m),
	picked as materialized (select * from (select row, stream, pos, message, size, due as turn, pos as place from lane where due <= $2
		union all select null, null, null, null, 0, turn, place from others) x order by turn, place limit $3),
	taken as materialized (select row, stream, pos, message from (select *, sum(size) over (order by turn, place) as sum from picked where stream is not null) x where sum <= $10),
	rest as materialized (select * from lane l where not exists (select from taken p where p.pos = l.pos)),
	moved as (update @.cursor c set moves = c.moves + 1, tx = at.top, pos = -1, low = coalesce((select min(due) from rest), at.low),
			late = x.late, done = array_fill(-1::bigint, array[cardinality(x.late)])
		from at, (select array(select pg_snapshot_xip(s) from at) || pg_current_xact_id() as late) x
		where c.queue = $1 and c.moves = (select moves from at) and (exists (select from given) or exists (select from taken)) returning c.moves),
	leased as (insert into @.batch (n, queue, owner, after, last, members, remains, claimed, until, lanes, places)
		select $8, $1, $5, min(pos), max(pos), count(*), count(*), (select now from at), (select now from at) + $6, array_agg(stream), array_agg(pos) from taken where exists (select from moved) having count(*) > 0),
	kept as (insert into @.ready (queue, due, pos, stream) select $1, due, pos, stream from rest where row is null and exists (select from moved) on conflict do nothing),
	passed as (delete from @.turn where ctid = any(array(select row from given where exists (select from moved)))),
	left_ready as (delete from @.ready where ctid = any(array(select row from taken where row is not null and exists (select from moved))))
	select p.stream, m.pos, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers, m.origin, (select now from at)
	from taken p cross join lateral (select * from @.message m where m.ctid = p.message limit 1) m where exists (select from moved)
	union all select stream, -least, null, '', '', '', 0, 0, null, name, null, null, 0 from found where pos is null and exists (select from moved)`
}

// notPaused is the condition that queue $1 is not paused by now: it was looked at before the
// cursor was waited for.
const notPaused = "exists (select from @.queue where n = $1 and not paused)"

// claimOrdered claims messages of a queue with streams, those of a stream together
// with its row: $2 is now, $6 the end of the leases, $7 the bytes that their bodies may have, the others as for claimLoose.
func claimOrdered() string {
	return `with loose as materialized (select f.* from ` + firstsAt("$2") + ` f),
	next as materialized (select c.pos, c.due - pr.priority * $4::bigint as turn, c.place from generate_series(-4, 4) as pr (priority) cross join lateral (
		select p.pos, p.due, p.place` + inStreams + ` and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint
		order by p.due, p.place limit $3 for no key update of p, s skip locked) c),
	first as materialized (select * from (select pos, turn, place from loose union all select * from next) x order by turn, place limit $3),
	picked as materialized (select pos from (select f.pos, sum(m.size) over (order by f.turn, f.place) as sum
		from first f cross join lateral (select octet_length(m.body) as size from @.message m where m.pos = f.pos limit 1) m) y where sum <= $7 and ` + notPaused + `) ` +
		leases("$2", "$6") + notAlone + ` from picked join @.message m on m.pos = picked.pos where p.pos = picked.pos returning ` + carried + `, ` + apart
}

const (
	// inStreams are the messages of queue $1 in streams that may go by $2.
	inStreams = ` from @.pending p join @.stream s on s.n = p.stream where p.queue = $1 and p.state = 0 and p.due <= $2 and ` + mayGo
	// mayGo is the condition that a message which is the first of its stream, or may pass
	// that, has not to wait by $2: one that may pass its head waits once that is due.
	mayGo = `(not p.may_pass or not exists (select from (select h.pos, h.due, h.rank from @.pending h where h.stream = p.stream order by h.rank limit 1) h
		where h.pos <> p.pos and h.due <= $2 and not exists (select from @.letter l where l.stream = p.stream and l.blocks and l.rank < h.rank)
		and exists (select from @.queue q where q.n = p.queue and q.strict)))`
)
