-- Rule operation-item: each item has its operation, and a letter while it is pending.
-- out: subject, text
select printf('operation %d', i.operation),
  'has an item without letter or operation, or in no known state'
from item i
where i.state = 'pending' and not exists (select 1 from letter l where l.pos = i.letter)
  or i.letter & 0xffffffffff > coalesce((select last from queue where n = i.letter >> 40), 0)
  or not exists (select 1 from operation o where o.n = i.operation)
  or i.state not in ('pending', 'skipped', 'failed', 'done', 'under way', 'unobserved', 'succeeded',
    'same failure', 'new failure', 'gone')
