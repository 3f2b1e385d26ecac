-- Finds what breaks the rule message-two-states: no message lies in two tables.
-- locks: none
-- out: subject, text
select p.pos::text, 'is on its way and has ended'
from @.pending p
join @.log l on l.pos = p.pos
union all
select c.id::text, 'is before all ranges and was handed out'
from @.fresh f
join @.current c on c.pos = f.pos
where c.location <> 4
