-- Part: counts messages that failed before. It reads their counters.
-- whole: select r.reason … true group by k
 as k, sum(r.n), sum(r.n * r.leased)
from retrying r
join queue q on q.n = r.queue
where
