-- Counts the leased messages of each queue.
-- out: queue, leased
select queue, sum(n)
from (
  select pos >> 40 as queue, 1 as n from pending indexed by pending_lease where state = 1
  union all
  select first >> 40, left from batch)
group by queue
