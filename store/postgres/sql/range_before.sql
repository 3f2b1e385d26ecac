-- Part: the nearest success range that begins before message "at", if it ends at or behind the
-- (tx, pos) that follows.
select
from (
  select s.last_tx, s.last
  from @.success_range s
  where s.queue = at.queue and (s.after_tx, s.after) < (at.tx, at.pos)
  order by s.after_tx desc, s.after desc
  limit 1
) s
where (s.last_tx, s.last) >=
