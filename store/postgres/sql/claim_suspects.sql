-- Claims suspects of a queue: all that are to be judged, or else a group with as many crashes.
-- in: queue — number of the queue
-- in: now — the time
-- in: max — how many messages at most
-- in: age — nanoseconds that one priority is worth
-- in: owner — number of the process in the table owner
-- in: until — end of the leases
-- in: judged — whether those are claimed that are to be judged
-- in: crashes — else those with this number of crashes
-- in: alone — what is noted of a group: it runs alone, as at its last run
-- in: bytes — how many bytes of bodies at most
-- locks: pending without a stream (skip locked), then pending and stream together (skip locked)
-- out: delivered_message, delivered_row
with
  loose as materialized (
    select p.pos, p.due - p.priority * :age::bigint as due_rank, p.queue_pos
    from @.pending p
    where p.queue = :queue
      and p.state = 0
      and p.due <= :now
      and p.stream is null
      and p.crashes > 0
      and (p.abandoned is not null) = :judged
      and (:judged or p.crashes = :crashes)
    order by 2, 3
    limit :max
    for update skip locked
  ),
  next as materialized (
    select p.pos, p.due - p.priority * :age::bigint as due_rank, p.queue_pos
    from @.pending p
    cross join lateral (select o.n from @.stream o where o.n = p.stream offset 0) s
    where p.queue = :queue
      and p.state = 0
      and p.due <= :now
      and {{may_go}}
      and p.crashes > 0
      and (p.abandoned is not null) = :judged
      and (:judged or p.crashes = :crashes)
    order by 2, 3
    limit :max
    for no key update of p, s skip locked
  ),
  sized as materialized (
    select x.pos, row_number() over w as nth, sum(octet_length(m.body)) over w as size
    from (select * from loose union all select * from next) x
    join @.message m on m.pos = x.pos
    window w as (order by x.due_rank, x.queue_pos)
  ),
  picked as materialized (select pos from sized where nth <= :max and (size <= :bytes or nth = 1))
{{lease_row}}, alone = case when :judged then p.alone else :alone end
from picked
join @.message m on m.pos = picked.pos
where p.pos = picked.pos
returning {{delivered_message}}, {{delivered_row}}
