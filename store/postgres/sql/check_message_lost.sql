-- Finds what breaks the rule message-lost: every message is on its way or has ended.
-- locks: none
-- out: subject, text
select c.id::text, 'is neither on its way nor has it ended'
from @.current c
where c.location is null or c.location = 4 and c.pos not in (select pos from @.fresh)
