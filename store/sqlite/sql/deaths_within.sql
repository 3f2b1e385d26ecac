-- Part: counts the letters of each facet that died within a part of an hour. Go adds conditions on
-- facets.
-- in: hour — it is returned
-- in: below_died, below_pos — the list begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- whole: … true
-- out: facet, hour, letters
select f.n, :hour, (
  select count(*)
  from letter
  where facet = f.n and (died, pos) < (:below_died, :below_pos)
    and (died, pos) > (:least_died, :least_pos))
from facet f
where
