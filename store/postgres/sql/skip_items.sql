-- Skips letters that are purged in operations that wait for them, but for the one that purges.
-- in: positions — of the letters
-- in: operations — IDs of the operations that purge them, or null
-- in: at — now
-- locks: item
-- out: none
update @.item i set state = 'skipped', at = :at
from unnest(:positions::bigint[], :operations::uuid[]) u (pos, by)
where i.letter = u.pos
  and i.state = 'pending'
  and i.operation is distinct from (select o.n from @.operation o where o.id = u.by)
