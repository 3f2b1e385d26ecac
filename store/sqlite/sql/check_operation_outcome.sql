-- Rule operation-outcome: what a redrive moved has an outcome, which is under way as long as its
-- letter is redriving for it.
-- out: subject, text
select printf('operation %d', i.operation),
  'has an item that is ' || i.state || ' while its letter is ' || coalesce(l.status, 'gone')
from item i
join operation o on o.n = i.operation
left join letter l on l.pos = i.letter
where (i.state = 'under way') <> coalesce(l.status = 'redriving' and l.operation = o.id, 0)
  or i.state = 'done' and o.event = 'redrive'
