-- Part: counts the letters of each kind that died within a part of an hour. Go adds conditions on
-- kinds.
-- in: hour — it is returned
-- in: below_died, below_pos — the list begins after this death and position
-- in: least_died, least_pos — and ends before this one
-- whole: … true
-- out: kind, hour, letters
select k.n, :hour, (
  select count(*)
  from letter
  where kind = k.n and (died, pos) < (:below_died, :below_pos)
    and (died, pos) > (:least_died, :least_pos))
from kind k
where
