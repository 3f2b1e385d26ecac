-- Part: lists the oldest letters of each facet. Go adds conditions on facets.
-- in: below_died, below_pos — the list of a facet begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- in: limit — how many of a facet at most
-- whole: … true
-- out: facet, died, pos, id
select f.n, l.died, l.pos, l.id
from facet f
cross join letter l on l.pos in (
  select pos
  from letter
  where facet = f.n and (died, pos) < (:below_died, :below_pos)
    and (died, pos) > (:least_died, :least_pos)
  order by died, pos
  limit :limit + 0)
where
