-- Part: begins the list of streams, with the columns that viewStream reads.
-- whole: … true limit 1
-- out: settings, n, queue, name, blocked, due
select q.settings, s.n, q.name, s.name, s.blocked, s.due
from queue q
join stream s on s.queue = q.n
where
