-- Lists the letters that died within an interval, from an index of deaths.
-- in: below_died, below_pos — the list begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- out: facet, died, pos
select facet, died, pos
from letter
where (died, pos) < (:below_died, :below_pos) and (died, pos) > (:least_died, :least_pos)
