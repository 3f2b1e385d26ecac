-- Part: reads the counters of whole hours. Go adds conditions on kinds.
-- in: first, end — hours, the latter is not counted
-- whole: … true
-- out: kind, hour, letters
select d.kind, d.hour, d.n
from kind k
cross join deaths d on d.kind = k.n and d.hour >= :first and d.hour < :end
where
