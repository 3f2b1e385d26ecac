-- Finds what breaks the rule message-two-states: no message lies in two tables.
-- locks: none
-- out: subject, text
select p.pos::text, 'is on its way and has ended'
from @.pending p
where exists (select from @.log l where l.pos = p.pos offset 0)
union all
select c.id::text, 'is before all ranges and was handed out'
from @.fresh f
cross join lateral (select c.id, c.location from @.current c where c.pos = f.pos offset 0) c
where c.location <> 4
