-- Finds what breaks the rule key-missing: a message that waits for its first claim holds its dedupe
-- key. The scope of its queue may have freed the key at that claim.
-- locks: none
-- out: subject, text
select m.id::text, 'is on its way, and its dedupe key is not held by it'
from @.pending p
join @.message m on m.pos = p.pos
where m.dedupe is not null and p.number = 0 and p.redrives = 0
  and not exists (select from @.dedupe d where d.queue = m.queue and d.key = m.dedupe and d.pos = m.pos)
