package postgres

// The statements that hand out messages lock what they take and pass by what others
// hold. A suspect comes alone. Of each priority the first are looked at, and of those
// and of the next plain ones the first by turn are taken, as many as one call may
// carry.

// handouts are those statements, for the schema of a store.
type handouts struct{ loose, lanes, ordered string }

func (s *Store) makeHandouts() handouts {
	return handouts{s.named(claimLoose()), s.named(claimLanes()), s.named(claimOrdered())}
}

// isVoid is the condition that leases have to be ended first, at the time c.now.
const isVoid = `(exists (select from @.pending where until > 0 and until <= c.now) or exists (select from @.batch where until <= c.now)
	or exists (select from @.stream where until > 0 and until <= c.now) or exists (select from @.owner o where ` + deadOwner + `))`

// carried are the columns of a message m that a delivery carries, and apart those of
// its row p.
const (
	carried = `m.pos, m.id, m.type, m.priority, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.dedupe, m.headers, m.origin`
	apart   = `p.due, p.place, p.attempts, p.deliveries, p.crashes, p.generation, p.redrives, p.number, p.until, p.received, p.claimed, p.abandoned, p.steps, coalesce(p.stream, 0), p.rank, p.gap, p.reason`
)

// firstsAt finds and locks what is due now of each priority, in no stream.
func firstsAt(now string) string {
	return `(select c.pos, c.due - pr.priority * $4::bigint as turn, c.place from generate_series(-4, 4) as pr (priority) cross join lateral (
		select p.pos, p.due, p.place from @.pending p where p.queue = $1 and p.state = 0 and p.crashes = 0 and p.priority = pr.priority::smallint and p.due <= ` + now + ` and p.stream is null
		order by p.due, p.place limit $3 for update skip locked) c offset 0)`
}

// suspectAt finds and locks the first suspect that is in no stream.
func suspectAt(now, from string) string {
	return `(select p.pos, p.due - p.priority * $4::bigint as turn, p.place from ` + from + `@.pending p
		where p.queue = $1 and p.state = 0 and p.crashes > 0 and p.due <= ` + now + ` and p.stream is null and not $7 order by 2, 3 limit 1 for update of p skip locked)`
}

// leases is what a claim does to rows p of pending.
func leases(now, until string) string {
	return `update @.pending p set state = 1, owner = $5, until = ` + until + `, claimed = ` + now + `, number = p.number + 1, deliveries = p.deliveries + 1,
		attempts = p.attempts + (p.abandoned is null)::int, received = case p.received when 0 then ` + now + ` else p.received end`
}

// claimLoose claims messages of queue $1 without order: at most $3, with $10 bytes, for
// owner $5 and $6 nanoseconds, in batches from number $9 + 1 on. $4 is what a priority
// is worth, $7 whether suspects stay out. It does nothing unless the settings are still
// $8 and no lease has to be ended first. A claim of plain messages does not wait for
// the disk: if the server forgets it, they are handed out again.
func claimLoose() string {
	return `with recursive
	clock as materialized (select coalesce($2::bigint, ` + databaseClock + `) as now),
	fit as materialized (select c.now from clock c where exists (select from @.owner where n = $5 and not gone) and not ` + isVoid + `
		and exists (select from @.queue q where q.n = $1 and q.settings = $8::jsonb and not q.paused)),
	suspect as materialized ` + suspectAt("fit.now", "fit, ") + `,
	due as materialized (select f.* from fit cross join lateral ` + firstsAt("fit.now") + ` f where not exists (select from suspect)),` +
		stretches + `,
	-- Without rows of their own that are due, and if it is not too much, all that was found goes.
	whole as materialized (select *, case when not mixed then set_config('synchronous_commit', 'off', true) end as commits
		from (select taken, size > $10 or exists (select from due) or exists (select from suspect) as mixed from total) x),
	chosen as materialized (select pos, ord from (select pos, ord, sum(size) over (order by turn, place, ord) as size, row_number() over (order by turn, place, ord) as nth from (
			select d.pos, d.turn, d.place, 0 as ord, octet_length(m.body)::bigint as size from (select * from suspect union all select * from due) d join @.message m on m.pos = d.pos
			union all select pos, turn, place, ord, size from fresh) x order by turn, place, ord limit $3) y
		where (size <= $10 or nth = 1) and (select mixed from whole)),
	share as materialized (select case when mixed then (select coalesce(max(ord), 0) from chosen) else taken end as n from whole),
	taken as (` + leases("fit.now", "fit.now + $6") + ` from fit, chosen c join @.message m on m.pos = c.pos where c.ord = 0 and p.pos = c.pos
		returning ` + carried + `, ` + apart + `),` +
		leasing + `
	select t.* from taken t`
}

// members reads what claimLoose leased by range: the members of batches whose numbers
// are $1 + 1 to $2.
const members = `select b.n, b.claimed, b.until, m.pos, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers, m.origin
	from @.batch b cross join lateral (select * from @.message m
		where m.queue = b.queue and not m.apart and (m.tx, m.pos) > (b.after_tx, b.after) order by m.tx, m.pos limit b.members) m
	where b.n between $1::bigint + 1 and $2 order by b.n`

// anyRows is the condition that queue $1 has rows that are not handed out and not
// behind others.
const anyRows = `(exists (select from @.pending where queue = $1 and state = 0 and crashes > 0) or exists (select from @.pending where queue = $1 and state = 0 and crashes = 0 and stream is null)
	or exists (select from @.pending where queue = $1 and state = 0 and crashes = 0 and stream is not null))`

// claimLanes claims what lanes of queue $1 have ready, but not what comes after the
// first $3 of all that may go, nor beside a suspect. $8 says whether there are others.
// Streams are changed where they were found: one that changed since the statement began
// is passed by, as its message may not be seen.
func claimLanes() string {
	return `with others as materialized (select due - priority * $4::bigint as turn, place, crashes > 0 as suspect from (
			select x.* from generate_series(-4, 4) as pr (priority) cross join lateral (
				(select p.due, p.priority, p.place, p.crashes from @.pending p where p.queue = $1 and p.state = 0 and p.crashes = 0 and p.priority = pr.priority::smallint and p.due <= $2 and p.stream is null order by p.due, p.place limit $3)
				union all (select p.due, p.priority, p.place, p.crashes` + inStreams + ` and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint order by p.due, p.place limit $3)) x
			union all (select p.due, p.priority, p.place, p.crashes from @.pending p where p.queue = $1 and p.state = 0 and p.crashes > 0 and p.due <= $2 and p.stream is null and not $7 limit 1)
			union all (select p.due, p.priority, p.place, p.crashes` + inStreams + ` and p.crashes > 0 and not $7 limit 1)) o where $8::boolean),
	lane as materialized (select s.ctid as row, s.due, s.ready from @.stream s where s.queue = $1 and s.ready > 0 and s.due <= $2 and not exists (select from others where suspect)
		order by s.due, s.ready limit $3 for update skip locked),
	picked as materialized (select row from (select row, due as turn, ready as place from lane union all select null, turn, place from others) x order by turn, place limit $3),
	taken as (update @.stream s set at = s.ready, top = s.ready, ready = 0, due = 0, owner = $5, until = $6, claimed = $2 where s.ctid = any(array(select row from picked)) returning s.n, s.at)
	select t.n, t.at, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers, m.origin
	from taken t cross join lateral (select * from @.message m where m.pos = t.at limit 1) m`
}

// claimOrdered claims messages of a queue with streams, those of a stream together
// with its row: $2 is now, $6 the end of the leases, the others as for claimLoose.
func claimOrdered() string {
	return `with lone as materialized ` + suspectAt("$2", "") + `,
	streamed as materialized (select p.pos, p.due - p.priority * $4::bigint as turn, p.place` + inStreams + ` and p.crashes > 0 and not $7 order by 2, 3 limit 1 for update of p, s skip locked),
	suspect as materialized (select pos from (select * from lone union all select * from streamed) x order by turn, place limit 1),
	loose as materialized (select f.* from ` + firstsAt("$2") + ` f),
	next as materialized (select c.pos, c.due - pr.priority * $4::bigint as turn, c.place from generate_series(-4, 4) as pr (priority) cross join lateral (
		select p.pos, p.due, p.place` + inStreams + ` and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint
		order by p.due, p.place limit $3 for update of p, s skip locked) c),
	picked as materialized (select pos from suspect union all select pos from (select pos from (select * from loose union all select * from next) x
		where not exists (select from suspect) order by turn, place limit $3) y) ` +
		leases("$2", "$6") + ` from picked join @.message m on m.pos = picked.pos where p.pos = picked.pos returning ` + carried + `, ` + apart
}

const (
	inStreams = ` from @.pending p join @.stream s on s.n = p.stream where p.queue = $1 and p.state = 0 and p.due <= $2 and ` + mayGo
	// mayGo is that one that may pass its head has to wait once that is due.
	mayGo = `(not p.may_pass or not exists (select from (select h.pos, h.due, h.rank from @.pending h where h.stream = p.stream order by h.rank limit 1) h
		where h.pos <> p.pos and h.due <= $2 and not exists (select from @.letter l where l.stream = p.stream and l.blocks and l.rank < h.rank)
		and exists (select from @.queue q where q.n = $1 and q.strict)))`
)
