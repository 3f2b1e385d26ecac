-- Claims messages of a strict queue by the ordered path: those whose tokens are the first by
-- rank among all that may go, but for rows that come before them. They become one batch.
--
-- It reads all tokens that were given since the cursor, and resolves those that say no
-- position. Tokens without room move to ready; what was read or taken is removed. The cursor
-- says where to go on: behind everything, but for transactions that have not ended.
--
-- The answer has more rows, with a position below zero: streams whose heads have to be
-- recomputed, with what their tokens said.
-- in: queue — number of the queue, whose cursor is locked
-- in: now — the time, as read before the cursor was waited for
-- in: max — how many messages at most
-- in: age — nanoseconds that one priority is worth
-- in: owner — number of the process in the table owner
-- in: lease — nanoseconds
-- in: clock — when the lease begins, or null for the time of this statement
-- in: batch — number of the batch
-- in: moves — how often the cursor has moved at least
-- in: bytes — how many bytes of bodies at most
-- locks: none beyond the cursor
-- out: stream, pos, id, type, body, hash, enqueued, expires, key, name, headers, origin, claimed
with
  at as materialized (
    select
      c.moves, c.tx, c.late, c.low, s.s, pg_snapshot_xmax(s.s) as top,
      coalesce(:clock::bigint, {{clock}}) as now
    from
      (select * from @.cursor where queue = :queue and moves >= :moves order by moves desc limit 1) c,
      (select pg_current_snapshot() as s offset 0) s
    where exists (select from @.queue where n = :queue and not paused)
  ),

  -- The first rows of each priority: their messages are left to claim_stream_rows.
  others as materialized (
    select due - priority * :age::bigint as due_rank, queue_pos
    from (
      select x.*
      from generate_series(-4, 4) as pr (priority)
      cross join lateral (
        (
          select p.due, p.priority, p.queue_pos
          from @.pending p
          where p.queue = :queue
            and p.state = 0
            and p.crashes = 0
            and p.priority = pr.priority::smallint
            and p.due <= :now
            and p.stream is null
          order by p.due, p.queue_pos
          limit :max
        )
        union all
        (
          select p.due, p.priority, p.queue_pos
          {{in_streams}}
            and p.crashes = 0
            and p.stream is not null
            and p.priority = pr.priority::smallint
          order by p.due, p.queue_pos
          limit :max
        )
      ) x
    ) o
    where {{rows_wait}}
  ),

  -- The tokens.
  given as materialized (
    select t.ctid as row, t.streams, t.positions
    from @.token t
    where t.queue = :queue and t.tx >= (select tx from at)
    union all
    select t.*
    from at
    cross join lateral unnest(at.late) l (tx)
    cross join lateral (
      select t.ctid, t.streams, t.positions
      from @.token t
      where t.queue = :queue and t.tx = l.tx and l.tx < at.tx
      offset 0
    ) t
  ),
  told as materialized (
    select u.stream, u.pos
    from given g
    cross join lateral unnest(g.streams, g.positions) u (stream, pos)
  ),
  found as materialized (
    select h.*, f.*
    from (select distinct stream, -pos as least from told where pos < 0) h
    cross join lateral @.resolve_token(h.stream, h.least) f
  ),
  heads as materialized (
    select null::tid as row, u.stream, u.pos, m.enqueued as due, m.message, m.size
    from (
      select * from told where pos > 0
      union all
      select distinct stream, pos
      from found f
      where pos is not null and not exists (select from told o where o.pos = f.pos)
    ) u
    cross join lateral (
      select m.enqueued, m.ctid as message, octet_length(m.body) as size
      from @.message m
      where m.pos = u.pos and m.ordered_stream = u.stream
      limit 1
    ) m
    union all
    select r.*, m.message, m.size
    from (
      select r.ctid, r.stream, r.pos, r.due
      from @.ready r
      where r.queue = :queue and r.due >= (select low from at)
      order by r.due, r.pos
      limit :max + 1
    ) r
    cross join lateral (
      select m.ctid as message, octet_length(m.body) as size from @.message m where m.pos = r.pos limit 1
    ) m
  ),

  -- The first by rank, within the bounds of messages and bytes.
  picked as materialized (
    select *
    from (
      select row, stream, pos, message, size, due as due_rank, pos as queue_pos from heads where due <= :now
      union all
      select null, null, null, null, 0, due_rank, queue_pos from others
    ) x
    order by due_rank, queue_pos
    limit :max
  ),
  taken as materialized (
    select row, stream, pos, message
    from (
      select *, sum(size) over (order by due_rank, queue_pos) as sum from picked where stream is not null
    ) x
    where sum <= :bytes
  ),
  rest as materialized (select * from heads h where not exists (select from taken p where p.pos = h.pos)),

  moved as (
    update @.cursor c set
      moves = c.moves + 1,
      tx = at.top,
      pos = -1,
      low = coalesce((select min(due) from rest), at.low),
      late = x.late,
      done = array_fill(-1::bigint, array[cardinality(x.late)])
    from at,
      (select array(select pg_snapshot_xip(s) from at) || pg_current_xact_id() as late) x
    where c.queue = :queue
      and c.moves = (select moves from at)
      and (exists (select from given) or exists (select from taken))
    returning c.moves
  ),
  leased as (
    insert into @.batch (n, queue, owner, after, last, members, remains, claimed, until, streams, positions)
    select
      :batch, :queue, :owner, min(pos), max(pos), count(*), count(*), (select now from at),
      (select now from at) + :lease, array_agg(stream), array_agg(pos)
    from taken
    where exists (select from moved)
    having count(*) > 0
  ),
  kept as (
    insert into @.ready (queue, due, pos, stream)
    select :queue, due, pos, stream
    from rest
    where row is null and exists (select from moved)
    on conflict do nothing
  ),
  passed as (
    delete from @.token where ctid = any(array(select row from given where exists (select from moved)))
  ),
  left_ready as (
    delete from @.ready
    where ctid = any(array(select row from taken where row is not null and exists (select from moved)))
  )
select
  p.stream, m.pos, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers,
  m.origin, (select now from at)
from taken p
cross join lateral (select * from @.message m where m.ctid = p.message limit 1) m
where exists (select from moved)
union all
select stream, -least, null, '', '', '', 0, 0, null, name, null, null, 0
from found
where pos is null and exists (select from moved)
