-- Finds what breaks the rule operation-outcome: what a redrive moved has an outcome, which is under
-- way as long as its letter is redriving for it.
-- locks: none
-- out: subject, text
select o.id::text, 'has an item that is ' || i.state || ' while its letter is ' || coalesce(l.status, 'gone')
from @.item i
join @.operation o on o.n = i.operation
left join @.letter l on l.pos = i.letter
where (i.state = 'under way') <> coalesce(l.status = 'redriving' and l.operation = o.id, false)
   or i.state = 'done' and o.event = 'redrive'
   or i.state not in (
     'pending', 'skipped', 'failed', 'done', 'under way', 'unobserved', 'succeeded', 'same failure', 'new failure', 'gone'
   )
