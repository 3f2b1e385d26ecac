-- Finds what breaks the rule key-missing: a message on its way holds its dedupe key.
-- locks: none
-- out: subject, text
select m.id::text, 'is on its way, and its dedupe key is not held by it'
from @.pending p
join @.message m on m.pos = p.pos
where m.dedupe is not null
  and not exists (select from @.dedupe d where d.queue = m.queue and d.key = m.dedupe and d.pos = m.pos)
