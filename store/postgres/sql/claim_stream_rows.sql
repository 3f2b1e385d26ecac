-- Claims rows of a queue with an order: the first by rank among those without a stream and
-- those that their streams let go, the latter together with the rows of their streams.
-- in: queue — number of the queue
-- in: now — the time
-- in: max — how many messages at most
-- in: age — nanoseconds that one priority is worth
-- in: owner — number of the process in the table owner
-- in: until — end of the leases
-- in: bytes — how many bytes of bodies at most
-- locks: pending without a stream (skip locked), then pending and stream together (skip locked)
-- out: delivered_message, delivered_row
with
  loose as materialized (
    select f.*
    from (
      select c.pos, c.due - pr.priority * :age::bigint as due_rank, c.queue_pos, c.row
      from generate_series(-4, 4) as pr (priority)
      cross join lateral (
        select p.pos, p.due, p.queue_pos, p.ctid as row
        from @.pending p
        where p.queue = :queue
          and p.state = 0
          and p.crashes = 0
          and p.priority = pr.priority::smallint
          and p.due <= :now
          and p.stream is null
        order by p.due, p.queue_pos
        limit :max
        for update skip locked
      ) c
      offset 0
    ) f
  ),
  next as materialized (
    select c.pos, c.due - pr.priority * :age::bigint as due_rank, c.queue_pos
    from generate_series(-4, 4) as pr (priority)
    cross join lateral (
      select p.pos, p.due, p.queue_pos
      {{in_streams}}
        and p.crashes = 0
        and p.stream is not null
        and p.priority = pr.priority::smallint
      order by p.due, p.queue_pos
      limit :max
      for no key update of p, s skip locked
    ) c
  ),
  first as materialized (
    select *
    from (select pos, due_rank, queue_pos from loose union all select * from next) x
    order by due_rank, queue_pos
    limit :max
  ),
  picked as materialized (
    select pos
    from (
      select f.pos, sum(m.size) over (order by f.due_rank, f.queue_pos) as sum
      from first f
      cross join lateral (
        select octet_length(m.body) as size from @.message m where m.pos = f.pos limit 1
      ) m
    ) y
    where sum <= :bytes and exists (select from @.queue where n = :queue and not paused)
  )
{{lease_row}}, alone = false
from picked
join @.message m on m.pos = picked.pos
where p.pos = picked.pos
returning {{delivered_message}}, {{delivered_row}}
