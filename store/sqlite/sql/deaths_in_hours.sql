-- Part: reads the counters of whole hours. Go adds conditions on facets.
-- in: first, end — hours, the latter is not counted
-- whole: … true
-- out: facet, hour, letters
select d.facet, d.hour, d.n
from facet f
cross join deaths d on d.facet = f.n and d.hour >= :first and d.hour < :end
where
