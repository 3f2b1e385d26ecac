-- Part: the positions of messages in streams with some names that have not ended, and perhaps more.
-- in: names — of the streams
select u.pos
from @.stream s
cross join lateral (
  select p.pos from @.pending p where p.stream = s.n
  union all
  select m.pos from @.message m where m.ordered_stream = s.n and m.pos > s.at
  union all
  select m.pos from @.member m where m.stream = s.n
) u
where s.name = any(:names)
