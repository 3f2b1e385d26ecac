-- Finds what breaks the rule original-orphan: only messages with letters were edited.
-- locks: none
-- out: subject, text
select 'position ' || o.pos, 'was edited and has no letter'
from @.original o
where not exists (select from @.letter l where l.pos = o.pos)
