-- Finds what breaks the rule row-no-message: no row is about a message that does not exist.
-- locks: none
-- out: subject, text
select 'position ' || x.pos, 'is kept without its message'
from (
  select pos from @.pending
  union all
  select pos from @.log
  union all
  select pos from @.failure
  union all
  select pos from @.letter
  union all
  select pos from @.dedupe
) x
where not exists (select from @.message m where m.pos = x.pos)
