-- Locks streams.
-- fill: streams — a query for queues and names; its arguments are those of this statement
-- fill: lock — for update, or for key share
-- locks: stream, by queue and name
-- out: stream
select s.n
from @.stream s
where s.n = any(array(
  select x.n
  from ({streams}) u (queue, name)
  cross join lateral (
    select o.n from @.stream o where o.queue + 0 = u.queue and o.name = u.name limit 1
  ) x
))
order by queue, name
{lock}
