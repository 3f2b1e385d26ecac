-- Part: the positions of messages with given IDs. An ID says the position of its message, or it is
-- in an index.
-- in: ids — the IDs
select m.pos
from unnest(:ids::uuid[]) u (id)
cross join lateral (
  (select pos from @.message where pos = @.pos_of(u.id) and id = u.id limit 1)
  union all
  (select pos from @.message where id = u.id and not numbered limit 1)
) m
