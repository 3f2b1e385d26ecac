-- Reads streams once they are locked.
-- fill: streams — a query for queues and names; its arguments are those of this statement
-- locks: none
-- out: stream, queue, name, mixed, idle
select coalesce(s.n, 0), u.queue, u.name, coalesce(s.mixed, false), coalesce(s.idle, false)
from (select distinct * from ({streams}) u) u (queue, name)
left join lateral (
  select s.n, s.mixed, not s.mixed and {{all_ended}} as idle
  from @.stream s
  where s.queue + 0 = u.queue and s.name = u.name
  limit 1
) s on true
