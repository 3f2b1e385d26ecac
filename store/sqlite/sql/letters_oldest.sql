-- Lists some letters of a facet, the earliest death first.
-- in: facet — its number
-- in: below_died, below_pos — the list begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- in: limit — how many at most
-- out: died, pos
select died, pos
from letter
where facet = +:facet and (died, pos) < (:below_died, :below_pos)
  and (died, pos) > (:least_died, :least_pos)
order by died, pos
limit :limit + 0
