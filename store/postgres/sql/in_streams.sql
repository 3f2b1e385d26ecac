-- Part: the rows p of a queue that are in streams s and may be claimed now.
-- in: queue — number of the queue
-- in: now — the time
from @.pending p
join @.stream s on s.n = p.stream
where p.queue = :queue and p.state = 0 and p.due <= :now and {{may_go}}
