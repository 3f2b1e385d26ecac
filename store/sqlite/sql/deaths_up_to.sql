-- Counts the letters that died within an interval, up to a limit.
-- in: below_died, below_pos — the list begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- in: limit — how many at most
-- out: letters
select count(*)
from (
  select 1
  from letter
  where (died, pos) < (:below_died, :below_pos) and (died, pos) > (:least_died, :least_pos)
  limit :limit + 0)
