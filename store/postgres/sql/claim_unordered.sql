-- Claims messages of a queue without order: rows that are due, and plain messages by range.
--
-- Ranges follow the order (tx, pos). The cursor passes transactions that are still open and
-- notes them as late; a later claim takes their messages once they have ended. So no claim
-- waits for a transaction, and none of its messages is missed. (PGQ's ticks do the same: they
-- deliver what became visible between two snapshots.)
--
-- It does nothing if the owner is off the list, or the queue was paused or changed. Without
-- rows it does not wait for the disk: if the server forgets the claim, the messages are
-- claimed again.
-- in: queue — number of the queue, whose cursor is locked
-- in: clock — the time that a test set, or null
-- in: max — how many messages at most
-- in: age — nanoseconds that one priority is worth
-- in: owner — number of the process in the table owner
-- in: lease — nanoseconds
-- in: moves — how often the cursor has moved at least
-- in: settings — of the queue, as they were when they were read
-- in: batches — the first batch has the number after this
-- in: bytes — how many bytes of bodies at most
-- in: settles — whether the transaction also settles: then it waits for the disk
-- locks: pending (skip locked)
-- out: delivered_message, delivered_row of each row; batches are read by claimed_batches
with recursive
  clock as materialized (select coalesce(:clock::bigint, {{clock}}) as now),
  fit as materialized (
    select c.now
    from clock c
    where exists (select from @.owner where n = :owner and not gone)
      and exists (
        select from @.queue q where q.n = :queue and q.settings = :settings::jsonb and not q.paused
      )
  ),

  -- Of each priority the rows that are due, up to max.
  due as materialized (
    select f.*
    from fit
    cross join lateral (
      select c.pos, c.due - pr.priority * :age::bigint as due_rank, c.queue_pos, c.row
      from generate_series(-4, 4) as pr (priority)
      cross join lateral (
        select p.pos, p.due, p.queue_pos, p.ctid as row
        from @.pending p
        where p.queue = :queue
          and p.state = 0
          and p.crashes = 0
          and p.priority = pr.priority::smallint
          and p.due <= fit.now
          and p.stream is null
        order by p.due, p.queue_pos
        limit :max
        for update skip locked
      ) c
      offset 0
    ) f
  ),

  -- The steps of a range claim, in the order in which messages are taken: what is left of late
  -- transactions that have ended, then from the cursor up to each open transaction, and up to
  -- all that have begun. All transactions within a step have ended: it cannot change any more.
  at as materialized (
    select c.moves, c.tx, c.pos, c.late, c.done, s.s, pg_snapshot_xmax(s.s) as top
    from fit,
      (select * from @.cursor where queue = :queue and moves >= :moves order by moves desc limit 1) c,
      (select pg_current_snapshot() as s offset 0) s
  ),
  late as materialized (
    select u.x, u.done, pg_visible_in_snapshot(u.x, at.s) as ended
    from at
    cross join lateral unnest(at.late, at.done) u (x, done)
  ),
  bound as materialized (
    select u.x, lag(u.x) over (order by u.x) as before, u.open
    from (
      select x, true as open
      from at
      cross join lateral pg_snapshot_xip(at.s) x
      where x >= at.tx and x <> all(at.late)
      union all
      select top, false from at where top >= at.tx
    ) u
  ),
  step as materialized (
    select row_number() over (order by bounded, x) as i, *
    from (
      select
        false as bounded, l.x, false as open, l.x as tx, l.done as pos,
        (l.x::text::bigint + 1)::text::xid8 as below
      from late l
      where l.ended
      union all
      select
        true, b.x, b.open, coalesce(b.before, at.tx),
        case when b.before is null then at.pos else 9223372036854775807 end, b.x
      from bound b
      cross join at
    ) s
  ),
  -- Counts the messages of one step after the other until there are enough. 64 is maxPieces.
  walk as (
    select
      0::bigint as i, 0::bigint as taken, 0::bigint as got, 0::bigint as size,
      0::bigint as newest, 0 as pieces
    union all
    select
      s.i, w.taken + c.got, c.got, w.size + coalesce(c.size, 0),
      greatest(w.newest, c.newest), w.pieces + (c.got > 0)::int
    from walk w
    join step s on s.i = w.i + 1
    cross join lateral (
      select count(*) as got, sum(size)::bigint as size, max(enqueued) as newest
      from (
        select octet_length(m.body) as size, m.enqueued
        from @.message m
        where m.queue = :queue and m.by_range and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below
        order by m.tx, m.pos
        limit :max - w.taken
      ) x
    ) c
    where w.taken < :max and w.pieces < 64
  ),
  total as materialized (select * from walk order by i desc limit 1),
  fresh as (
    select
      f.pos, f.size, row_number() over o as ord, max(enqueued) over o as due_rank, max(pos) over o as queue_pos
    from (
      select w.i, m.*
      from walk w
      join step s on s.i = w.i
      cross join lateral (
        select m.tx, m.pos, m.enqueued, octet_length(m.body) as size
        from @.message m
        where m.queue = :queue and m.by_range and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below
        order by m.tx, m.pos
        limit w.got
      ) m
    ) f
    window o as (order by i, tx, pos)
  ),

  -- Without rows that are due, and if it is not too much, all that was found is taken.
  whole as materialized (
    select *, case when not mixed and not :settles then set_config('synchronous_commit', 'off', true) end as commits
    from (select taken, size > :bytes or exists (select from due) as mixed from total) x
  ),
  -- Otherwise the first by rank, rows and plain messages together. Rows are remembered by where
  -- they lie: they are locked, and messages do not change.
  chosen as materialized (
    select row, message, ord
    from (
      select
        row, message, ord,
        sum(size) over (order by due_rank, queue_pos, ord) as size,
        row_number() over (order by due_rank, queue_pos, ord) as nth
      from (
        select d.row, m.row as message, d.due_rank, d.queue_pos, 0 as ord, m.size
        from due d
        cross join lateral (
          select m.ctid as row, octet_length(m.body) as size from @.message m where m.pos = d.pos limit 1
        ) m
        union all
        select null, null, due_rank, queue_pos, ord, size from fresh
      ) x
      order by due_rank, queue_pos, ord
      limit :max
    ) y
    where (size <= :bytes or nth = 1) and (select mixed from whole)
  ),
  share as materialized (
    select case when mixed then (select coalesce(max(ord), 0) from chosen) else taken end as n
    from whole
  ),

  -- The batches: of each step as many messages as are taken. Nothing is claimed before it came,
  -- whichever clock says so.
  piece as materialized (
    select
      w.i, :batches::bigint + row_number() over (order by w.i) as n, s.bounded, s.tx as after_tx,
      s.pos as after, w.members, z.tx, z.pos, greatest(w.newest, fit.now) as at
    from fit,
      (select *, least(got, (select n from share) - (taken - got)) as members from walk where got > 0) w
    join step s on s.i = w.i
    cross join lateral (
      select m.tx, m.pos
      from @.message m
      where m.queue = :queue and m.by_range and (m.tx, m.pos) > (s.tx, s.pos) and m.tx < s.below
      order by m.tx, m.pos
      offset w.members - 1
      limit 1
    ) z
    where w.members > 0
  ),
  -- The cursor moves past everything if all was taken, else to the last message that was. What
  -- it passes that has not ended is late from then on.
  cut as materialized (
    select z.*, share.n = t.taken and t.taken < :max and t.i = (select max(i) from step) as exhausted
    from (select * from piece order by i desc limit 1) z, share, total t
  ),
  later as materialized (
    select l.x, l.done from late l where not l.ended
    union all
    select s.x, case when s.i = c.i then c.pos else s.pos end
    from step s, cut c
    where not s.bounded and not c.exhausted and s.i >= c.i
    union all
    select s.x, -1 from step s, cut c where s.open and (c.exhausted or s.i < c.i)
  ),
  moved as (
    update @.cursor c set
      moves = c.moves + 1,
      tx = case when cut.exhausted then at.top when cut.bounded then cut.tx else c.tx end,
      pos = case when cut.exhausted then -1 when cut.bounded then cut.pos else c.pos end,
      late = array(select x from later order by x),
      done = array(select done from later order by x)
    from at, cut
    where c.queue = :queue and c.moves = (select moves from at)
    returning c.moves
  ),
  leased as (
    insert into @.batch (n, queue, owner, after_tx, after, last_tx, last, members, remains, claimed, until)
    select n, :queue, :owner, after_tx, after, tx, pos, members, members, at, at + :lease
    from piece
    where exists (select from moved)
  )
-- The rows, as lease_row does.
update @.pending p set
  state = 1,
  owner = :owner,
  until = fit.now + :lease,
  claimed = fit.now,
  number = p.number + 1,
  deliveries = p.deliveries + 1,
  attempts = p.attempts + (p.abandoned is null)::int,
  received = case p.received when 0 then fit.now else p.received end,
  alone = false
from fit, chosen c
cross join lateral (select * from @.message m where m.ctid = c.message offset 0) m
where c.ord = 0 and p.ctid = c.row
returning {{delivered_message}}, {{delivered_row}}
