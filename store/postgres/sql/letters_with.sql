-- Part: the positions of letters with given IDs, as messages_with.
-- in: ids — the IDs
select l.pos
from unnest(:ids::uuid[]) u (id)
cross join lateral (
  (select pos from @.letter where pos = @.pos_of(u.id) and id = u.id limit 1)
  union all
  (select pos from @.letter where id = u.id and not numbered limit 1)
) l
