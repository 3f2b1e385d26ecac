-- Counts messages on their way, by queue and state: 0 ready, 1 blocked, 2 scheduled, 3 leased; the
-- scheduled ones by how soon they are due.
-- in: bands — nanoseconds that separate the bands of the scheduled
-- in: now — the time
-- locks: none
-- out: queue, kind, band, count, first due, last due
select
  queue, kind,
  case kind when 2 then (select count(*) from unnest(:bands::bigint[]) e where due > :now + e) else 0 end as band,
  count(*), min(due), max(due)
from (
  select
    p.queue, p.due,
    case
      when p.state = 1 then 3
      when p.due > :now then 2
      when p.state = 6 or not {{may_go}} then 1
      else 0
    end as kind
  from @.pending p
  union all
  select queue, enqueued, 0 from @.fresh
  union all
  select queue, enqueued, case when enqueued > :now then 2 when ready then 0 else 1 end from @.follower
) w
group by 1, 2, 3
union all
select queue, 3, 0, sum(remains)::bigint, 0, 0 from @.batch group by queue
